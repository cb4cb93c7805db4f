"""Signing in with a name and a password."""

from __future__ import annotations

from typing import Any

from allauth.account import forms
from django.http import HttpRequest, HttpResponse

from romulus_site.accounts.sessions import begin


class LoginForm(forms.LoginForm):
    """Posts `username`, as browsers and their password stores know it."""

    def add_prefix(self, field_name: str) -> str:
        name: str = super().add_prefix(field_name)
        return "username" if name == "login" else name

    def login(self, request: HttpRequest, *args: Any, **options: Any) -> HttpResponse:
        answer: HttpResponse = super().login(request, *args, **options)
        begin(request)  # allauth has made it one that each change of it lengthens
        return answer
