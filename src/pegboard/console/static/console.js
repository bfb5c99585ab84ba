// Opens the event stream, asks for the parts of the page that are stale, and opens and closes the dialog.
"use strict";
// A system with a broken language, such as en-US@posix, hands it to the browser as it is, and libraries stop at it.
try { Intl.getCanonicalLocales(navigator.language); } catch { Object.defineProperty(navigator, "language", { value: "en-GB" }); }
(() => {
  let source = null;
  // For which parts something else asks, such as a field that is typed into: its answer brings a newer address.
  const asking = new Map();
  const later = new Set();

  const stale = (topics) => {
    for (const part of document.querySelectorAll("[data-live]")) {
      if (topics === null || part.dataset.live.split(" ").some((topic) => topics.includes(topic))) {
        if (asking.has(part.id)) later.add(part.id);
        else part.dispatchEvent(new CustomEvent("stale"));
      }
    }
  };

  // A second click on a button whose answer is still to come decides nothing.
  const sending = new WeakSet();
  document.addEventListener("submit", (event) => {
    if (!event.target.hasAttribute("hx-post")) return;
    if (sending.has(event.target)) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    sending.add(event.target);
  }, true);

  document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
    if (ctx.target !== ctx.sourceElement && "live" in ctx.target.dataset) asking.set(ctx.target.id, ctx);
  });
  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    sending.delete(ctx.sourceElement);
    const id = ctx.target.id;
    if (asking.get(id) !== ctx) return;
    asking.delete(id);
    if (later.delete(id)) document.getElementById(id)?.dispatchEvent(new CustomEvent("stale"));
  });

  // A code in the address is used up by this, and not by a program that only reads the page.
  document.querySelector("form[data-at-once]")?.requestSubmit();

  const lost = (is) => {
    document.getElementById("lost").hidden = !is;
  };

  const open = () => {
    source = new EventSource(document.body.dataset.events);
    source.addEventListener("open", () => lost(false));
    // The stream begins here instead of going on: anything may have changed since the page was rendered.
    source.addEventListener("started", () => stale(null));
    source.addEventListener("changed", (event) => stale(JSON.parse(event.data)));
    source.addEventListener("signed_out", () => location.assign("/console/sign-in"));
    source.addEventListener("error", () => {
      lost(true);
      if (source.readyState === EventSource.CLOSED) again();
    });
  };

  const close = () => {
    if (source !== null) source.close();
    source = null;
  };

  // The browser gives up on an answer that is no stream, such as one of a gateway that was started again.
  const again = () => {
    close();
    setTimeout(async () => {
      const answer = await fetch(document.body.dataset.events, { method: "HEAD" }).catch(() => null);
      if (answer !== null && answer.status === 401) location.assign("/console/sign-in");
      else if (source === null && !document.hidden) open();
    }, 2000);
  };

  // What was unfolded of a call was seen, also where the part is rendered anew: its buttons count the rest.
  const seen = new Set();
  const unseen = () => {
    for (const count of document.querySelectorAll("[data-unseen-of]")) {
      const folds = [...document.querySelectorAll("details[data-unseen]")].filter((one) => one.dataset.unseen === count.dataset.unseenOf);
      const left = new Set(folds.map((one) => one.dataset.argument).filter((one) => !seen.has(one))).size;
      count.textContent = left === 0 ? "" : `, ${left} ${left === 1 ? "argument" : "arguments"} unseen`;
    }
  };
  document.addEventListener("toggle", ({ target }) => {
    if (target.open && "argument" in target.dataset) {
      seen.add(target.dataset.argument);
      unseen();
    }
  }, true);
  document.addEventListener("htmx:after:swap", unseen);

  const ages = () => {
    for (const time of document.querySelectorAll("time[data-ago], time[data-ahead]")) {
      const ahead = "ahead" in time.dataset;
      const seconds = Math.max(0, ((Date.now() - Date.parse(time.dateTime)) / 1000) * (ahead ? -1 : 1));
      const [size, unit] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]].find(([least]) => seconds >= least) ?? [1, "s"];
      const rounded = `${Math.round(seconds / size)} ${unit}`;
      const text = ahead ? `in ${rounded}` : `${rounded} ago`;
      if (time.textContent !== text) time.textContent = text;
    }
    // What a part shows may end by itself.
    for (const part of document.querySelectorAll("[data-until]")) {
      if (Date.now() >= Number(part.dataset.until) * 1000) part.dispatchEvent(new CustomEvent("stale"));
    }
  };

  // Moments are rendered in UTC, and shown in the zone of the browser.
  const zoned = new Intl.DateTimeFormat("sv-SE", { dateStyle: "short", timeStyle: "medium" });
  const zone = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" });
  const moments = () => {
    for (const time of document.querySelectorAll("time[data-at]")) {
      const at = new Date(time.dateTime), text = zoned.format(at);
      if (time.textContent === text) continue;
      const name = zone.formatToParts(at).find((part) => part.type === "timeZoneName").value;
      time.title = `${text} ${name}; ${time.textContent}`;
      time.textContent = text;
    }
  };
  document.addEventListener("htmx:after:swap", moments);
  moments();

  // Times and days that somebody chooses are in the zone of the browser, which goes with them.
  document.addEventListener("change", ({ target }) => {
    const form = target.form, zone = form?.elements.namedItem("zone");
    if (!zone) return;
    const chosen = [...form.elements].some((one) => one.value && (one.type.startsWith("date") || (one.name === "day" && one.checked)));
    zone.value = chosen ? new Intl.DateTimeFormat().resolvedOptions().timeZone : "";
  }, true);

  // A name that is picked becomes a line of the field above.
  document.addEventListener("change", ({ target }) => {
    const field = document.getElementById(target.dataset?.addsTo ?? "");
    if (field === null || !target.value) return;
    const lines = field.value.split("\n").filter((line) => line.trim());
    field.value = [...lines.filter((line) => line !== target.value), target.value].join("\n");
    target.value = "";
  });

  document.addEventListener("keydown", (event) => {
    const menu = document.querySelector("details.menu[open]");
    if (event.key !== "Escape" || menu === null) return;
    menu.open = false;
    menu.querySelector("summary").focus();
  });

  if (document.body.dataset.events) {
    // htmx listens from a timer on that it set when it was read: before, it would not hear of what is stale.
    document.addEventListener("DOMContentLoaded", () => setTimeout(() => {
      // A browser has six connections to a host: pages that nobody looks at need none.
      document.addEventListener("visibilitychange", () => {
        if (document.hidden) close();
        else if (source === null) open();
      });
      if (!document.hidden) open();
    }));
    setInterval(ages, 10_000);
  }

  document.addEventListener("click", async ({ target }) => {
    const button = target.closest("[data-copy]");
    if (button === null) return;
    const label = button.textContent;
    const copied = await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent).then(() => true, () => false);
    button.textContent = copied ? "Copied" : "Not copied: select it instead";
    setTimeout(() => { button.textContent = label; }, 2000);
  });

  // From cell to cell of a matrix, as in a sheet.
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  document.addEventListener("keydown", (event) => {
    const from = event.target.closest(".matrix td");
    if (from === null || !(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const [down, right] = steps[event.key];
    const row = from.parentElement.parentElement.rows[from.parentElement.sectionRowIndex + down];
    const cell = row?.cells[from.cellIndex + right]?.querySelector(".cell");
    if (!cell) return;
    event.preventDefault();
    cell.focus();
  });

  const dialog = document.getElementById("dialog");
  document.addEventListener("htmx:after:swap", () => {
    if (dialog.childElementCount === 0 || dialog.open) return;
    dialog.showModal();
    dialog.scrollTop = 0; // the button that has the focus stays in sight at its foot
  });
  // It is emptied before it closes: its close event comes later, and another part's swap in between would open it again.
  const closeDialog = () => {
    dialog.replaceChildren();
    dialog.close();
  };
  document.addEventListener("done", closeDialog);
  dialog.addEventListener("cancel", (event) => {
    if (event.target === dialog) dialog.replaceChildren();
  });
  dialog.addEventListener("close", () => {
    if (!dialog.open) dialog.replaceChildren();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      closeDialog();
    }
  });
  document.addEventListener("htmx:error", () => lost(source === null || source.readyState !== EventSource.OPEN));
})();
