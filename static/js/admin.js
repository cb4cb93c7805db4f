/* What Django's own widgets leave out, for those who do not see them: the icons of its picker have a
   name, which is said only of something with a role; the halves of a date with a time have none. */
(() => {
  "use strict";

  const names = () => {
    for (const icon of document.querySelectorAll(".search-label-icon")) icon.setAttribute("role", "img");
    for (const pair of document.querySelectorAll(".datetime")) {
      const field = pair.closest("fieldset, .form-row")?.querySelector("legend, label");
      const [date, time] = pair.querySelectorAll("input");
      date?.setAttribute("aria-label", `${field?.textContent.trim() ?? ""} date`);
      time?.setAttribute("aria-label", `${field?.textContent.trim() ?? ""} time`);
    }
  };

  // After Django's own, which make the picker when the page has loaded.
  addEventListener("load", () => setTimeout(names));
})();
