"""The forms of passkeys. What a browser posts may be anything, also from nobody who is signed in:
what cannot be read, or is signed by something else, is no passkey, and no fault of ours."""

from __future__ import annotations

from typing import Any

from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django.forms import Form, HiddenInput, ValidationError

from workflows.admin.json_field import TypedJson

# What its parsers raise beside what allauth expects of them.
UNREADABLE = (
    *(LookupError, TypeError, ValueError, AttributeError, RecursionError),
    *(InvalidSignature, UnsupportedAlgorithm),
)


INCORRECT = "incorrect_code"  # allauth's one word for all that it refuses
NOT_KNOWN = (
    "This passkey lets nobody in here: it was removed, or is of another account. Use another one, "
    "or another way."
)


PASSWORDLESS = (
    "It lets you in alone, without your password; it then asks for your finger, your face or a PIN."
)


class AnyCredential(Form):
    """A form with a `credential`; before that one of allauth in the order of its bases.

    Attributes:
        refused: what is said of one that is not taken; nobody has typed a code.
    """

    credential = TypedJson(widget=HiddenInput)
    refused = NOT_KNOWN

    def add_error(self, field: str | None, error: Any) -> None:
        if getattr(error, "code", "") == INCORRECT:
            field, error = "credential", ValidationError(self.refused, code=INCORRECT)
        super().add_error(field, error)

    def full_clean(self) -> None:
        try:
            super().full_clean()
        except UNREADABLE:
            self.add_error("credential", get_adapter().validation_error(INCORRECT))


class AddForm(AnyCredential, forms.AddWebAuthnForm):
    """One more passkey."""

    refused = "What your browser gave is no passkey that can be kept here. Try it once more."

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.fields["passwordless"].help_text = PASSWORDLESS


class AuthenticateForm(AnyCredential, forms.AuthenticateWebAuthnForm):
    """A passkey as the second factor."""


class LoginForm(AnyCredential, forms.LoginWebAuthnForm):
    """A passkey instead of name and password."""


class ReauthenticateForm(AnyCredential, forms.ReauthenticateWebAuthnForm):
    """A passkey once more, before something grave."""
