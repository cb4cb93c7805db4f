/* What HTML and htmx do not do by themselves. Runs under a strict content policy: no inline
   handlers, no eval, no inline styles. Every page works without it. */
(() => {
  "use strict";

  const root = document.documentElement;
  const $ = (selector, within = document) => within.querySelector(selector);
  const $$ = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Browsers may refuse to keep anything; nothing depends on it.
  const keep = (key, value) => {
    try {
      return value === undefined ? localStorage.getItem(key) : localStorage.setItem(key, value);
    } catch {
      return null;
    }
  };

  // --- voices: a polite one for small things, an urgent one for what went wrong --------------

  const toast = (shown) => {
    $("#toasts")?.replaceChildren(shown);
    // It stays while somebody points at it, or has come to it.
    const stays = () => shown.matches(":hover, :focus");
    const leave = () => (stays() ? setTimeout(leave, 1000) : shown.remove());
    setTimeout(leave, 6000);
  };

  const say = (text) => {
    const shown = document.createElement("p");
    shown.className = "toast tone-quiet";
    shown.textContent = text;
    toast(shown);
  };

  // What a poll has to say of the reader's own cases.
  document.addEventListener("say", (event) => say(event.detail.text));

  const alertWith = (template, fill, place) => {
    const content = template.content.cloneNode(true);
    for (const [selector, text] of Object.entries(fill)) $(selector, content).textContent = text;
    place.replaceChildren(content);
  };

  const broken = (text) => {
    if ($("#broken")) alertWith($("#broken"), { "[data-text]": text }, $("#alerts"));
  };

  // Before this page is drawn anew: forms keep what was typed.
  const leaving = () => document.dispatchEvent(new Event("romulus:leaving"));

  // --- theme, times ----------------------------------------------------------------------------

  // Kept in a cookie, so that the server draws the next page in it and nothing flashes.
  const toggleTheme = () => {
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    document.cookie = `theme=${root.dataset.theme}; path=/; max-age=31536000; samesite=lax`;
  };

  if (keep("times") === "absolute") root.classList.add("abs-times");
  const toggleTimes = () => {
    keep("times", root.classList.toggle("abs-times") ? "absolute" : "relative");
  };

  // The server's clock, not the machine's: a laptop that is minutes off must not lie.
  const skew = Date.parse(document.body.dataset.now) - Date.now() || 0;
  const serverNow = () => Date.now() + skew;

  const age = (milliseconds) => {
    const all = Math.max(Math.floor(milliseconds / 1000), 0);
    const [days, hours, minutes, seconds] = [
      Math.floor(all / 86400), Math.floor(all / 3600) % 24, Math.floor(all / 60) % 60, all % 60,
    ];
    if (days === 0 && hours === 0 && all >= 120) return `${minutes} min`;
    const parts = days
      ? [[days, "d"], [hours, "h"]]
      : hours ? [[hours, "h"], [minutes, "min"]] : [[minutes, "min"], [seconds, "s"]];
    return parts.filter(([n]) => n).map(([n, unit]) => `${n} ${unit}`).join(" ") || "0 s";
  };

  // The same words as `_relative` in romulus_site/templatetags/romulus.py.
  const relative = (style, at) => {
    const since = serverNow() - at;
    if (style === "age") return age(since);
    if (style === "left") return age(-since);
    if (style === "old") return `${age(since)} old`;
    if (style === "due") return since < 0 ? `in ${age(-since)}` : `${age(since)} late`;
    return since <= -1000 ? `in ${age(-since)}` : `${age(since)} ago`;
  };

  // A time of day with its zone: "04:12 CET". An empty zone is the browser's own.
  const clockIn = (zone, at) => {
    const style = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short" };
    const said = new Date(at).toLocaleTimeString("en-GB", { ...style, timeZone: zone || undefined });
    return said.replace("GMT", "UTC");
  };

  const tick = () => {
    for (const time of $$("time[data-rel]")) {
      const text = relative(time.dataset.rel, Date.parse(time.dateTime));
      const shown = $(".rel", time);
      if (shown && shown.textContent !== text) shown.textContent = text;
    }
    const clock = $("[data-clock]");
    if (clock) clock.textContent = clockIn(document.body.dataset.zone || "UTC", serverNow());
  };
  setInterval(tick, 10000);
  document.addEventListener("htmx:afterSettle", tick);

  // The other zone stands in the tooltip: UTC beside the one that was chosen, else the browser's.
  document.addEventListener("pointerover", (event) => {
    const time = event.target.closest?.("time.t:not([data-own])");
    const chosen = document.body.dataset.zone;
    if (!time || (!chosen && new Date().getTimezoneOffset() === 0)) return;
    time.dataset.own = "";
    $(".abs", time)?.append(` · ${clockIn(chosen ? "UTC" : "", time.dateTime)}`);
  });

  // --- copying, sheets, menus, printing --------------------------------------------------------

  const copy = (text) => {
    const done = () => say(`Copied ${text}`);
    const refused = () => say("Copying was blocked by the browser");
    if (navigator.clipboard) {
      navigator.clipboard.writeText(text).then(done, refused);
      return;
    }
    // Without TLS there is no clipboard interface.
    const field = document.createElement("textarea");
    field.className = "vh";
    field.value = text;
    document.body.append(field);
    field.select();
    (document.execCommand("copy") ? done : refused)();
    field.remove();
  };

  document.addEventListener("click", (event) => {
    const on = (selector) => event.target.closest(selector);
    const copied = on("[data-copy]");
    if (copied) copy(copied.dataset.copy);
    const closer = on("dialog [data-closes]");
    if (closer) {
      event.preventDefault();
      closer.closest("dialog").close();
    }
    const opener = on("[data-opens]");
    if (opener) document.getElementById(opener.dataset.opens)?.showModal();
    if (on("[data-theme-toggle]")) toggleTheme();
    if (on("[data-print]")) print();
    if (on("[data-reload]")) {
      event.preventDefault();
      leaving();
      location.reload();
    }
    for (const menu of $$("details.menu[open]")) {
      if (!menu.contains(event.target)) menu.open = false;
    }
  });

  document.addEventListener("keydown", (event) => {
    const menu = event.key === "Escape" && event.target.closest?.("details.menu[open]");
    if (!menu) return;
    menu.open = false;
    $("summary", menu).focus();
  });

  // --- what is on its way ----------------------------------------------------------------------

  // What somebody asked for and is not there after 400 ms is shown as its outline; what stands
  // there already stays readable.
  const OUTLINE_AFTER = 400;
  const outlined = new WeakMap();

  const outline = (target) => {
    target.setAttribute("aria-busy", "true");
    if (target.childElementCount) return;
    const bones = $("#bones")?.content.cloneNode(true);
    if (!bones) return;
    if (target.matches("tr")) {
      const cell = document.createElement("td");
      cell.colSpan = target.closest("table").rows[0].cells.length;
      cell.append(bones);
      target.append(cell);
      target.hidden = false;
    } else target.append(bones);
  };

  document.addEventListener("htmx:beforeSend", (event) => {
    const { elt, target, requestConfig } = event.detail;
    if (elt.hasAttribute("data-poll") || requestConfig.verb !== "get") return;
    outlined.set(event.detail.xhr, setTimeout(() => outline(target), OUTLINE_AFTER));
  });

  document.addEventListener("htmx:afterRequest", (event) => {
    const { target, xhr, successful } = event.detail;
    clearTimeout(outlined.get(xhr));
    target.removeAttribute("aria-busy");
    const left = !successful && $(".bones", target);
    if (!left) return;
    (left.closest("td") ?? left).remove();
    if (target.matches("tr")) target.hidden = true;
  });

  // --- keyboard --------------------------------------------------------------------------------

  const row = () => document.activeElement?.closest("[data-row]");
  const move = (by) => {
    // What leads nowhere has nothing to stand on.
    const rows = $$("[data-row]").filter((each) => $("[data-row-link]", each));
    const at = rows.indexOf(row());
    const next = rows[Math.max(0, Math.min(rows.length - 1, at < 0 ? 0 : at + by))];
    if (next) $("[data-row-link]", next)?.focus();
  };

  // On what is ticked, else on the row with the focus, else on the case of the page.
  const actOn = (key, name) => {
    const ticked = $("[data-select]:checked") && $(`[data-bulk] [data-key=${key}]`);
    const url = row()?.dataset[name];
    if (ticked) ticked.click();
    else if (url) htmx.ajax("GET", url, { target: "#act", swap: "innerHTML" });
    else $(`[aria-keyshortcuts=${key}]`)?.click();
  };

  const keys = {
    "/": () => {
      const field = $$(SEARCH).find((each) => each.checkVisibility());
      if (field) field.focus();
      else $(".to-search")?.click();
    },
    "?": () => $("#keys")?.showModal(),
    t: toggleTimes,
    j: () => move(1),
    k: () => move(-1),
    o: () => row() && $("[data-row-link]", row())?.click(),
    p: () => row() && $("[data-preview]", row())?.click(),
    x: () => row() && $("[data-select]", row())?.click(),
    a: () => actOn("a", "assign"),
    s: () => actOn("s", "snooze"),
    r: () => $("[aria-keyshortcuts=r]")?.click(),
    d: () => {
      const form = $("form[data-decide]");
      if (!form) return;
      form.scrollIntoView();
      $("input[type=radio]:not(:disabled)", form)?.focus({ preventScroll: true });
    },
  };

  // Escape empties the search, as browsers do; once it is empty, it goes back to where one was.
  const SEARCH = "[data-search], #q";
  let before;
  document.addEventListener("focusin", (event) => {
    if (event.target.matches?.(SEARCH)) before = event.relatedTarget;
  });

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || event.isComposing || !event.target.matches?.(SEARCH)) return;
    event.preventDefault();
    const field = event.target;
    if (field.value) {
      field.value = "";
      field.dispatchEvent(new Event("input", { bubbles: true }));
    } else if (before?.isConnected) before.focus();
    else field.blur();
  });

  const typing = (target) =>
    target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");

  let chord = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (typing(event.target) || $("dialog[open]") || document.body.dataset.letters === "off") return;
    if (performance.now() < chord) {
      chord = 0;
      const link = $$("[data-go]").find((item) => item.dataset.go === event.key);
      if (link) {
        event.preventDefault();
        link.click();
        return;
      }
    }
    if (event.key === "g") {
      chord = performance.now() + 900;
    } else if (Object.hasOwn(keys, event.key)) {
      event.preventDefault();
      keys[event.key]();
    }
  });

  // --- begin -----------------------------------------------------------------------------------

  // What was done on the page before: put there once more, so that readers hear it.
  const told = $("#toasts")?.lastElementChild;
  if (told) setTimeout(() => toast(told), 100);

  // A page that the browser took out of its own store has an old token and old facts.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    leaving();
    location.reload();
  });

  window.romulus = { $, $$, say, alertWith, broken, leaving };
})();
