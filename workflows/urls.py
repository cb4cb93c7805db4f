"""The addresses of runs; what each answers is said in `workflows.pages`."""

from __future__ import annotations

from django.urls import URLPattern, path

from workflows.views import controls, runs, versions, workers

urlpatterns: list[URLPattern] = [
    path("runs/", runs.runs, name="runs"),
    # /runs/<id>/
    path("runs/<uuid:run>/", runs.run, name="run"),
    path("runs/<uuid:run>/cancel/", controls.run_cancel, name="run_cancel"),
    path("runs/<uuid:run>/pause/", controls.run_pause, name="run_pause"),
    path("runs/<uuid:run>/resume/", controls.run_resume, name="run_resume"),
    path("versions/", versions.versions, name="versions"),
    path("workers/", workers.workers, name="workers"),
]
