/* Live updates: what polls, when that rests, and what is made of the answers. */
(() => {
  "use strict";

  const { $, $$, alertWith, broken, leaving } = window.romulus;

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

  // What polls may stand for more than itself.
  const regionOf = (element) => element.closest("[data-region]") ?? element;
  const rests = (element) =>
    document.hidden ||
    paused() ||
    performance.now() < rest ||
    $("dialog[open], details.menu[open]") ||
    regionOf(element).contains(document.activeElement) ||
    (element.dataset.poll === "calm" && regionOf(element).matches(":hover"));

  // By the clock, or because a script asked; not because somebody pressed something.
  const isPoll = (detail) =>
    detail.elt.hasAttribute("data-poll") && !detail.requestConfig?.triggeringEvent?.isTrusted;

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

  // A question takes as long as the provider does. Meanwhile each source shows its own answer.
  document.addEventListener("htmx:beforeSend", (event) => {
    const { elt, xhr } = event.detail;
    if (!elt.matches("form[data-asks]")) return;
    const look = setInterval(() => htmx.trigger("#evidence-cards", "asking"), 1000);
    xhr.addEventListener("loadend", () => clearInterval(look));
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
    if (target.getAttribute("role") === "status" || isPoll(event.detail)) {
      if (target.dataset.said === xhr.responseText) event.detail.shouldSwap = false;
      target.dataset.said = xhr.responseText;
    }
    // A whole page never goes into a panel: the session is another one, or has ended.
    if (/^\s*<!doctype/i.test(xhr.responseText)) {
      event.detail.shouldSwap = false;
      if (xhr.status < 500) broken(EARLIER);
      return;
    }
    // What somebody is at may be gone with the answer: then its part is where they go on.
    const part = document.activeElement?.closest("section[aria-labelledby]");
    view = {
      part: part?.getAttribute("aria-labelledby"),
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
    if (view?.part && document.activeElement === document.body) {
      document.getElementById(view.part)?.focus({ preventScroll: true });
    }
    view = null;
    // A question that was asked for is shown in its dialog.
    const sheet = event.target.closest?.("dialog[data-sheet]");
    if (sheet && !sheet.open) sheet.showModal();
    showLive();
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
    if (elt.matches("[data-live-switch]") && successful) {
      const live = event.detail.requestConfig.formData.get("live");
      pause(live);
      tabs.postMessage({ user: document.body.dataset.user, live });
    }
  });

  document.addEventListener("htmx:beforeOnLoad", (event) => {
    if (event.detail.xhr.status === 401) leaving();
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

  showLive();
  attend(document);
})();
