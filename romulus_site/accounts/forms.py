"""Signing in with a name and a password."""

from __future__ import annotations

from allauth.account import forms


class LoginForm(forms.LoginForm):
    """Posts `username`, as browsers and their password stores know it."""

    def add_prefix(self, field_name: str) -> str:
        name: str = super().add_prefix(field_name)
        return "username" if name == "login" else name
