/* Says that a session is about to end, on a page that was opened long before. */
(() => {
  "use strict";

  const BEFORE = 120000; // ms; as SOON in romulus_site/context_processors.py
  const LONGEST = 2 ** 31 - 1; // what a timer can wait
  const skew = Date.parse(document.body.dataset.now) - Date.now() || 0;
  let timer = 0;

  const watch = () => {
    clearTimeout(timer);
    const banner = document.getElementById("session-end");
    if (!banner) return;
    const left = Date.parse(banner.dataset.ends) - Date.now() - skew - BEFORE;
    if (left <= 0) banner.hidden = false;
    else timer = setTimeout(watch, Math.min(left, LONGEST));
  };

  watch();
  document.addEventListener("htmx:afterSettle", watch);
})();
