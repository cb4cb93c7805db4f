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

  const say = (text) => {
    const toast = document.createElement("p");
    toast.className = "toast tone-quiet";
    toast.textContent = text;
    $("#toasts")?.replaceChildren(toast);
    setTimeout(() => toast.remove(), 6000);
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
    if (since < 0) return `in ${age(-since)}`;
    return `${age(since)} ${style === "due" ? "late" : "ago"}`;
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
      stash();
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

  // --- keyboard --------------------------------------------------------------------------------

  const row = () => document.activeElement?.closest("[data-row]");
  const move = (by) => {
    const rows = $$("[data-row]");
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
      const field = $$("[data-search], #q").find((each) => each.checkVisibility());
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

  // --- the review queue: previews, and what is ticked --------------------------------------------

  const fold = (button) => {
    button.setAttribute("aria-expanded", "false");
    document.getElementById(button.dataset.preview)?.setAttribute("hidden", "");
  };

  const unfold = (button) => {
    for (const other of $$("[data-preview][aria-expanded=true]")) fold(other);
    button.setAttribute("aria-expanded", "true");
    document.getElementById(button.dataset.preview)?.removeAttribute("hidden");
  };

  const count = () => {
    const bar = $("[data-bulk]");
    if (!bar) return;
    const ticked = $$("[data-select]:checked").length;
    bar.hidden = ticked === 0;
    $("[data-count]", bar).textContent = `${ticked} selected`;
    const all = $("[data-select-all]");
    if (all) all.checked = ticked > 0 && ticked === $$("[data-select]").length;
  };

  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-select-all]")) {
      for (const box of $$("[data-select]")) box.checked = event.target.checked;
    }
    if (event.target.matches("[data-select], [data-select-all]")) count();
  });

  // Pressed again, a preview closes and nothing is asked for.
  document.addEventListener("htmx:beforeRequest", (event) => {
    const button = event.detail.elt;
    if (!button.matches("[data-preview][aria-expanded=true]")) return;
    event.preventDefault();
    fold(button);
  });

  document.addEventListener("htmx:afterSwap", (event) => {
    const button = event.detail.requestConfig?.elt;
    if (button?.matches("[data-preview]")) unfold(button);
  });

  // --- the decision form -----------------------------------------------------------------------

  // Says what is missing while someone types. The server checks everything again on arrival.
  const chosen = (form) => $("input[name=kind]:checked", form);

  const missing = (form) => {
    const gaps = [];
    const kind = chosen(form);
    if (!kind) gaps.push(["a decision", $("input[name=kind]:not(:disabled)", form)]);
    for (const field of $$("[data-needed]", form)) {
      const its = kind && field.closest("[data-for]").dataset.for === kind.value;
      if (its && !field.value.trim()) gaps.push([field.dataset.needed, field]);
    }
    const note = form.elements.note;
    const least = Number(form.dataset.noteLeast);
    const typed = note.value.trim().length;
    if (typed < least) gaps.push([`a note of at least ${least} characters`, note]);
    const code = form.elements.code;
    const fits = code.value.trim().toLowerCase() === form.dataset.code.toLowerCase();
    if (!fits) gaps.push(["the last 6 characters", code]);
    return gaps;
  };

  const check = (form) => {
    const gaps = missing(form);
    $("[data-commit]", form).setAttribute("aria-disabled", String(gaps.length > 0));
    const list = gaps.map(([what]) => what).join(", ");
    $("[data-missing]", form).textContent = list && `Still missing: ${list}.`;
    return gaps;
  };

  const forms = (within) => {
    for (const form of $$("form[data-decide]", within)) check(form);
    if (within.matches?.("form[data-decide]")) check(within);
  };

  // What is typed is kept on the server, for this person alone, at most every ten seconds.
  let draftTimer = 0;
  const saveDraft = async (form) => {
    clearTimeout(draftTimer);
    draftTimer = 0;
    if (!form.isConnected) return false;
    try {
      const answer = await fetch(form.dataset.draft, {
        method: "POST",
        body: new FormData(form),
        headers: { "X-Requested-With": "draft" },
        redirect: "manual",
      });
      return answer.status === 204;
    } catch {
      return false; // it stays in the form, and the next ten seconds try again
    }
  };

  document.addEventListener("input", (event) => {
    const form = event.target.closest("form[data-decide]");
    if (!form) return;
    draftTimer ||= setTimeout(() => saveDraft(form), 10000);
    event.target.removeAttribute("aria-invalid");
    check(form);
  });

  const busy = (form, on) => {
    const button = $("[data-commit]", form);
    if (on) button.setAttribute("aria-busy", "true");
    else button.removeAttribute("aria-busy");
  };

  // Before htmx hears of it: what is missing, or pressed already, is not sent.
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-decide]");
    if (!form) return;
    if (event.submitter?.matches("[data-save]")) {
      event.preventDefault();
      event.stopImmediatePropagation();
      saveDraft(form).then((kept) =>
        say(kept ? "Draft saved" : "The draft was not saved: no answer came"));
      return;
    }
    clearTimeout(draftTimer);
    draftTimer = 0;
    if (event.submitter?.matches("[data-discard]")) {
      event.stopImmediatePropagation(); // a plain form: the page is drawn anew
      return;
    }
    const gaps = check(form);
    const pressed = $("[data-commit]", form).hasAttribute("aria-busy");
    if (gaps.length || pressed) {
      event.preventDefault();
      event.stopImmediatePropagation();
      if (!gaps.length) return;
      const [, field] = gaps[0];
      if (field?.type !== "radio") field?.setAttribute("aria-invalid", "true");
      field?.focus();
    } else {
      busy(form, true);
    }
  }, true);

  // What was typed outlives a reload and the way through the login page, in this tab only and
  // for the same person only.
  const OF_THE_FORM = ["token", "version", "basis", "csrfmiddlewaretoken"];
  const draftKey = () => `draft:${document.body.dataset.user}:${location.pathname}`;
  const stash = () => {
    const form = $("form[data-decide]");
    if (!form) return;
    const typed = [...new FormData(form)].filter(([name]) => !OF_THE_FORM.includes(name));
    try {
      sessionStorage.setItem(draftKey(), JSON.stringify(typed));
    } catch { /* not kept */ }
  };
  const restore = () => {
    const form = $("form[data-decide]");
    let typed = [];
    try {
      typed = JSON.parse(sessionStorage.getItem(draftKey()) || "[]");
      sessionStorage.removeItem(draftKey());
    } catch { /* nothing kept */ }
    if (!form) return;
    for (const [name, value] of typed) {
      const field = form.elements[name];
      if (!field) continue;
      if (field instanceof RadioNodeList) {
        for (const radio of field) radio.checked ||= radio.value === value && !radio.disabled;
      } else if (field.type === "radio") {
        field.checked = field.value === value && !field.disabled;
      } else {
        field.value = value;
      }
    }
  };

  // --- live updates ----------------------------------------------------------------------------

  // The server keeps the switch for the person; other tabs hear of it at once.
  const paused = () => document.body.dataset.live === "paused";
  const showLive = () => {
    for (const form of $$("[data-live-switch]")) {
      const mark = $("[data-live]", form);
      mark.textContent = paused() ? "Paused" : "Live";
      mark.classList.toggle("paused", paused());
      const button = $("button", form);
      button.value = paused() ? "on" : "paused";
      button.setAttribute("aria-pressed", String(paused()));
      $("span", button).textContent = paused() ? "Resume updates" : "Pause updates";
    }
  };
  const pause = (live) => {
    document.body.dataset.live = live;
    showLive();
  };
  const tabs = new BroadcastChannel("live");
  tabs.addEventListener("message", (event) => {
    if (event.data.user === document.body.dataset.user) pause(event.data.live);
  });

  let missed = 0; // rounds without an answer, over all that polls
  let rest = 0; // until then, in ms of performance.now(), nothing polls

  const rests = (element) =>
    document.hidden ||
    paused() ||
    performance.now() < rest ||
    $("dialog[open], details.menu[open]") ||
    element.contains(document.activeElement) ||
    (element.dataset.poll === "calm" && element.matches(":hover"));

  const isPoll = (detail) =>
    detail.elt.hasAttribute("data-poll") && !detail.requestConfig?.triggeringEvent;

  const miss = () => {
    // What else was on its way when the first of a round failed belongs to the same round.
    if (performance.now() < rest) return;
    missed += 1;
    rest = performance.now() + Math.min(5000 * 2 ** missed, 120000);
    const place = $("#stopped-alert");
    if (missed < 2 || !place || place.childElementCount) return;
    const asOf = $("[data-poll][data-as-of]")?.dataset.asOf ?? "when it was loaded";
    alertWith($("#stopped"), { "[data-as-of]": asOf }, place);
  };

  const answered = () => {
    missed = 0;
    rest = 0;
    $("#stopped-alert")?.replaceChildren();
  };

  document.addEventListener("htmx:beforeRequest", (event) => {
    if (isPoll(event.detail) && rests(event.detail.elt)) event.preventDefault();
  });

  const EARLIER = "This page belongs to an earlier session. Nothing was recorded.";
  const GONE = "It is no longer there, or not yours to see.";
  const OURS = "Something broke on our side. The case is as it was.";
  const SILENT = "No answer came. Look at the record before you press again.";

  // What someone opened or scrolled to stays so when a region is drawn anew.
  let view = null;
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target } = event.detail;
    // Somebody came into the region while the answer was on its way: it comes with the next one.
    if (isPoll(event.detail) && rests(event.detail.elt)) {
      event.detail.shouldSwap = false;
      return;
    }
    // What was said already is not said again: a reader would hear it every time.
    if (target.getAttribute("role") === "status") {
      if (target.dataset.said === xhr.responseText) event.detail.shouldSwap = false;
      target.dataset.said = xhr.responseText;
    }
    // A whole page never goes into a panel: the session is another one, or has ended.
    if (/^\s*<!doctype/i.test(xhr.responseText)) {
      event.detail.shouldSwap = false;
      if (xhr.status < 500) broken(EARLIER);
      return;
    }
    view = {
      open: $$("details[open][id]", target).map((details) => details.id),
      scrolled: $$("[id][tabindex='0']", target).map((box) => [box.id, box.scrollLeft]),
    };
  });

  document.addEventListener("htmx:afterSettle", (event) => {
    for (const id of view?.open ?? []) document.getElementById(id)?.setAttribute("open", "");
    for (const [id, left] of view?.scrolled ?? []) {
      const box = document.getElementById(id);
      if (box) box.scrollLeft = left;
    }
    view = null;
    // A question that was asked for is shown in its dialog.
    const sheet = event.target.closest?.("dialog[data-sheet]");
    if (sheet && !sheet.open) sheet.showModal();
    forms(event.detail.elt);
    showLive();
    tick();
    count();
    attend(event.detail.elt);
  });

  // Where to go after an answer: the error summary, the other's decision, the record's heading.
  const attend = (within) => {
    const marked = within.matches?.("[data-focus]") ? within : $("[data-focus]", within);
    const target = marked?.dataset.focus ? document.getElementById(marked.dataset.focus) : marked;
    target?.focus();
  };

  document.addEventListener("htmx:afterRequest", (event) => {
    const { elt, xhr, successful } = event.detail;
    if (isPoll(event.detail) && (successful || xhr.status === 204)) answered();
    if (elt.matches("form[data-decide]")) busy(elt, false);
    if (elt.matches("[data-live-switch]") && successful) {
      const live = event.detail.requestConfig.formData.get("live");
      pause(live);
      tabs.postMessage({ user: document.body.dataset.user, live });
    }
  });

  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.status === 401) stash();
  });

  // Our own writes follow our own rule: sent, and no usable answer, is not known.
  const WEIGHTY = "form[data-decide], form[data-weighty]";
  const unsure = (form) => alertWith($("[data-unsure]", form), {}, $("[data-alert]", form));

  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    if (xhr.status === 401) return; // on the way to the login page
    const { elt } = event.detail;
    if (isPoll(event.detail)) miss();
    else if (elt.matches(WEIGHTY) && xhr.status >= 500) unsure(elt);
    else broken(xhr.status === 404 ? GONE : OURS);
  });

  for (const lost of ["htmx:sendError", "htmx:timeout"]) {
    document.addEventListener(lost, (event) => {
      const { elt } = event.detail;
      if (isPoll(event.detail)) {
        miss();
      } else if (elt.matches(WEIGHTY)) {
        unsure(elt);
      } else {
        broken(SILENT);
      }
    });
  }

  // --- begin -----------------------------------------------------------------------------------

  restore();
  forms(document);
  count();
  showLive();
  attend(document);

  // A page that the browser took out of its own store has an old token and old facts.
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return;
    stash();
    location.reload();
  });
})();
