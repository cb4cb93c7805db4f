"""Every address of the console."""

from __future__ import annotations

from django.contrib import admin
from django.contrib.auth.views import LoginView, LogoutView
from django.urls import include, path

from romulus_site import health, metrics, views

urlpatterns = [
    path("", views.start, name="start"),
    path("login/", LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("logout/", LogoutView.as_view(), name="logout"),
    path("needs-you/", views.needs_you, name="needs_you"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("admin/", admin.site.urls),
    path("", include("workflows.urls")),
    path("", include("reconciliation.urls")),
]

handler403 = "romulus_site.views.not_allowed"
handler404 = "romulus_site.views.not_found"
