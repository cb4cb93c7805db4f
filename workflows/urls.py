"""The addresses of runs and events: `workflows.pages` and `event_pages` say what each answers."""

from __future__ import annotations

from django.urls import URLPattern, path

from workflows.views import controls, event_actions, events, hooks, runs, versions, workers

urlpatterns: list[URLPattern] = [
    # Where sources deliver; without the slash too, for a sender is not to be sent elsewhere.
    path("hooks/<slug:source>/", hooks.hook, name="hook"),
    path("hooks/<slug:source>", hooks.hook),
    path("runs/", runs.runs, name="runs"),
    path("runs/export/", runs.runs_export, name="runs_export"),
    # /runs/<id>/
    path("runs/<uuid:run>/", runs.run, name="run"),
    path("runs/<uuid:run>/cancel/", controls.run_cancel, name="run_cancel"),
    path("runs/<uuid:run>/pause/", controls.run_pause, name="run_pause"),
    path("runs/<uuid:run>/resume/", controls.run_resume, name="run_resume"),
    path("events/", events.events, name="events"),
    path("events/send/", event_actions.event_send, name="event_send"),
    # /events/<id>/
    path("events/<uuid:event>/", events.event, name="event"),
    path("events/<uuid:event>/attach/", event_actions.event_attach, name="event_attach"),
    path("events/<uuid:event>/dismiss/", event_actions.event_dismiss, name="event_dismiss"),
    path("events/<uuid:event>/restore/", event_actions.event_restore, name="event_restore"),
    path("events/<uuid:event>/replay/", event_actions.event_replay, name="event_replay"),
    path("versions/", versions.versions, name="versions"),
    path("workers/", workers.workers, name="workers"),
]
