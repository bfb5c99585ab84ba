// How many calls wait: in the title and the icon of the page, and as a notification where somebody asked for that.
"use strict";
(() => {
  const KEY = "pegboard.notify";
  const button = document.getElementById("notify");
  const icon = document.getElementById("icon");
  if (button === null) return;
  const supported = "Notification" in window;
  const wanted = () => supported && Notification.permission === "granted" && localStorage.getItem(KEY) === "on";
  const title = document.title.replace(/^\(\d+\+?\) /, "");
  const shown = () => document.getElementById("waiting")?.dataset ?? { count: "0", newest: "" };
  // What waited when the page was opened was seen on it.
  let known = new Set(shown().newest.split(" "));

  const notify = (id, count) => {
    const text = count === 1 ? "1 call waits for approval." : `${count} calls wait for approval.`;
    const note = new Notification("Pegboard", { body: text, tag: `pegboard-${id}`, icon: "/console/static/icon.svg" });
    note.addEventListener("click", () => {
      window.focus();
      location.assign(`/console/approvals/${encodeURIComponent(id)}`);
      note.close();
    });
  };

  const update = () => {
    const { count, newest } = shown();
    document.title = count === "0" ? title : `(${count}) ${title}`;
    const href = count === "0" ? "/console/static/icon.svg" : `/console/icon?count=${Math.min(Number(count), 99)}`;
    if (icon.getAttribute("href") !== href) icon.setAttribute("href", href);
    const ids = newest.split(" ").filter(Boolean);
    const fresh = ids.filter((id) => !known.has(id));
    known = new Set([...known, ...ids]);
    if (fresh.length > 0 && wanted()) notify(fresh[0], Number(count));
  };

  const draw = () => {
    button.setAttribute("aria-pressed", String(wanted()));
    button.hidden = !supported;
    const refused = supported && Notification.permission === "denied";
    button.disabled = refused;
    button.textContent = refused ? "This browser blocks notifications" : "Notify me of waiting calls";
  };

  button.addEventListener("click", async () => {
    if (wanted()) localStorage.setItem(KEY, "off");
    else if ((await Notification.requestPermission()) === "granted") localStorage.setItem(KEY, "on");
    draw();
  });
  document.addEventListener("htmx:after:swap", update);
  draw();
})();
