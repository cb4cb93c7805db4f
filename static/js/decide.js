/* The decision form: what is missing, drafts, what was typed. The server checks everything again. */
(() => {
  "use strict";

  const { $, $$, say } = window.romulus;

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
    const { zone } = Object.fromEntries(typed);
    for (const [name, value] of typed) {
      const field = form.elements[name];
      if (!field || name === "zone") continue;
      // A time that was typed by other clocks would be another one here.
      if (name === "until" && zone !== form.elements.zone.value) continue;
      if (field instanceof RadioNodeList) {
        for (const radio of field) radio.checked ||= radio.value === value && !radio.disabled;
      } else if (field.type === "radio") {
        field.checked = field.value === value && !field.disabled;
      } else {
        field.value = value;
      }
    }
  };

  document.addEventListener("romulus:leaving", stash);

  document.addEventListener("htmx:afterSettle", (event) => forms(event.detail.elt));

  document.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.elt.matches("form[data-decide]")) busy(event.detail.elt, false);
  });

  restore();
  forms(document);
})();
