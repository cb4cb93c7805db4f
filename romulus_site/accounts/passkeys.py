"""The forms of passkeys. What a browser posts may be anything, also from nobody who is signed in:
what cannot be read, or is signed by something else, is no passkey, and no fault of ours."""

from __future__ import annotations

from allauth.mfa.adapter import get_adapter
from allauth.mfa.webauthn import forms
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from django.forms import Form, HiddenInput

from workflows.admin.json_field import TypedJson

# What its parsers raise beside what allauth expects of them.
UNREADABLE = (
    *(LookupError, TypeError, ValueError, AttributeError, RecursionError),
    *(InvalidSignature, UnsupportedAlgorithm),
)


class AnyCredential(Form):
    """A form with a `credential`; before that one of allauth in the order of its bases."""

    credential = TypedJson(widget=HiddenInput)

    def full_clean(self) -> None:
        try:
            super().full_clean()
        except UNREADABLE:
            self.add_error("credential", get_adapter().validation_error("incorrect_code"))


class AddForm(AnyCredential, forms.AddWebAuthnForm):
    """One more passkey."""


class AuthenticateForm(AnyCredential, forms.AuthenticateWebAuthnForm):
    """A passkey as the second factor."""


class LoginForm(AnyCredential, forms.LoginWebAuthnForm):
    """A passkey instead of name and password."""


class ReauthenticateForm(AnyCredential, forms.ReauthenticateWebAuthnForm):
    """A passkey once more, before something grave."""
