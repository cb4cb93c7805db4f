"""The site as an app: what is set up once every app is loaded."""

from __future__ import annotations

from django.apps import AppConfig, apps


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
        # One way in: the admin's own login page would know neither second factors nor throttling.
        admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]
