// The palette: Control and K or / open it; what is typed is looked for by the server, and chosen with the arrow keys.
"use strict";
(() => {
  const dialog = document.getElementById("palette");
  if (dialog === null) return;
  const words = document.getElementById("palette-words");
  const options = () => [...dialog.querySelectorAll("[role=option]")];
  const chosen = () => options().find((one) => one.getAttribute("aria-selected") === "true");

  const choose = (option) => {
    for (const one of options()) one.setAttribute("aria-selected", String(one === option));
    if (option === undefined) words.removeAttribute("aria-activedescendant");
    else {
      words.setAttribute("aria-activedescendant", option.id);
      option.scrollIntoView({ block: "nearest" });
    }
  };

  const open = () => {
    if (dialog.open || document.querySelector("dialog[open]") !== null) return;
    dialog.showModal();
    words.select();
    words.dispatchEvent(new CustomEvent("opened"));
  };

  const typing = (target) => target.closest("input, textarea, select, [contenteditable]") !== null && target.closest("dialog:not([open])") === null;
  const page = (key) => document.querySelector(`.pages [data-key="${CSS.escape(key)}"]`);
  let going = -Infinity;

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]") !== null) return;
    if (event.key === "/") {
      event.preventDefault();
      open();
    } else if (event.key === "?") location.assign("/console/keys");
    else if (event.key === "g" && event.timeStamp - going > 1500) going = event.timeStamp;
    else if (event.timeStamp - going <= 1500 && page(event.key) !== null) {
      going = -Infinity;
      location.assign(page(event.key).href);
    } else going = -Infinity;
  });

  words.addEventListener("keydown", (event) => {
    const all = options(), at = all.indexOf(chosen());
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: at < 0 ? undefined : 0, End: at < 0 ? undefined : all.length - 1 }[event.key];
    if (next !== undefined && all.length > 0) {
      event.preventDefault();
      choose(all[(next + all.length) % all.length]);
    }
  });
  // What was typed last may still be on its way to the server: Enter waits for its answer.
  let asked = "", wanted = false;
  const go = () => {
    const address = (chosen() ?? options()[0])?.dataset.address;
    if (address !== undefined) location.assign(address);
  };
  dialog.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    if (document.getElementById("hits").dataset.words === words.value.trim()) go();
    else wanted = true;
  });
  document.addEventListener("htmx:after:swap", () => {
    const hits = document.getElementById("hits");
    if (!dialog.open || hits === null || !("words" in hits.dataset)) return;
    if (hits.dataset.words !== asked || chosen() === undefined) choose(options()[0]);
    asked = hits.dataset.words;
    if (wanted && asked === words.value.trim()) {
      wanted = false;
      go();
    }
  });
  dialog.addEventListener("click", (event) => {
    const option = event.target.closest("[role=option]");
    if (option !== null) {
      choose(option);
      go();
    } else if (event.target === dialog) dialog.close();
  });
  dialog.addEventListener("close", () => {
    wanted = false;
    words.blur();
  });
  for (const opener of [document.getElementById("find"), document.querySelector(".find-link")]) {
    opener?.addEventListener("click", (event) => {
      event.preventDefault();
      open();
    });
  }
})();
