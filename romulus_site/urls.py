"""Every address of the console."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from romulus_site import health, metrics, views

urlpatterns = [
    path("", include("romulus_site.accounts.urls")),
    path("needs-you/", views.needs_you, name="needs_you"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("admin/rights/", include("romulus_site.rights.urls")),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("workflows.urls")),
    path("", include("reconciliation.urls")),
]

handler400 = "romulus_site.views.not_read"
handler403 = "romulus_site.views.not_allowed"
handler404 = "romulus_site.views.not_found"
handler500 = "romulus_site.views.broken"
