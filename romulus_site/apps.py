"""The site as an app: what is set up once every app is loaded."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig, apps
from django.http import HttpResponse


class SiteConfig(AppConfig):
    name = "romulus_site"

    def ready(self) -> None:
        from allauth.account.decorators import secure_admin_login
        from django.contrib import admin

        from romulus_site.accounts import record
        from romulus_site.rights import gone

        apps.get_app_config("auth").verbose_name = "People and groups"
        record.connect()
        gone.connect()
        # One way in, and one to a new password: the admin's own pages would know neither second
        # factors nor throttling, and leave nothing on the record.
        admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
        admin.site.password_change = to_own_password  # type: ignore[assignment,method-assign]


def to_own_password(*_: Any, **__: Any) -> HttpResponse:
    from django.shortcuts import redirect

    return redirect("account_change_password")
