/* The review queue: previews, and what is ticked. */
(() => {
  "use strict";

  const { $, $$ } = window.romulus;

  const fold = (button) => {
    button.setAttribute("aria-expanded", "false");
    document.getElementById(button.dataset.preview)?.setAttribute("hidden", "");
  };

  const unfold = (button) => {
    for (const other of $$("[data-preview][aria-expanded=true]")) fold(other);
    button.setAttribute("aria-expanded", "true");
    document.getElementById(button.dataset.preview)?.removeAttribute("hidden");
  };

  // The topmost thing closes: a dialog, a menu and a search by themselves, else the preview.
  document.addEventListener("keydown", (event) => {
    const open = event.key === "Escape" && $("[data-preview][aria-expanded=true]");
    if (!open || event.defaultPrevented || $("dialog[open], details.menu[open]")) return;
    fold(open);
    open.focus();
  });

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

  document.addEventListener("htmx:afterSettle", count);
  count();
})();
