/* Says in words what became of a passkey, beside the button that asked for it. */
(() => {
  "use strict";

  const WORDS = {
    NotAllowedError: "No passkey was used: it was refused, or took too long. Try again.",
    InvalidStateError: "This passkey is known here already.",
    SecurityError: "Passkeys need this page to be reached by its name and over TLS.",
  };

  document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    const { exception } = event.detail;
    for (const place of document.querySelectorAll("[data-passkey-error]")) {
      place.textContent = WORDS[exception?.name] ?? "The passkey could not be asked for. Try again.";
      place.hidden = false;
    }
  });
})();
