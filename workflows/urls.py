"""The addresses of runs; what each answers is said in `workflows.pages`."""

from __future__ import annotations

from django.urls import URLPattern, path

from workflows.views import runs

urlpatterns: list[URLPattern] = [
    path("runs/", runs.runs, name="runs"),
    path("runs/<uuid:run>/", runs.run, name="run"),
]
