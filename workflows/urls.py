"""The addresses of runs and events: `workflows.pages` and `event_pages` say what each answers."""

from __future__ import annotations

from django.urls import URLPattern, path

from workflows.views import (
    approvals,
    approvals_api,
    authzen,
    controls,
    event_actions,
    events,
    hooks,
    runs,
    runs_api,
    versions,
    workers,
)

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
    path("approvals/", approvals.approvals, name="approvals"),
    # /approvals/<id>/
    path("approvals/<uuid:proposal>/", approvals.approval, name="approval"),
    path("approvals/<uuid:proposal>/again/", approvals.ask_anew, name="approval_again"),
    # The same for programs, with a token of a person.
    path("api/approvals/", approvals_api.proposals, name="api_approvals"),
    path("api/approvals/<uuid:proposal>/", approvals_api.proposal, name="api_approval"),
    path("api/approvals/<uuid:proposal>/answers/", approvals_api.answers, name="api_answers"),
    # The boundary for executors elsewhere (AuthZEN).
    path("api/runs/", runs_api.runs, name="api_runs"),
    path("api/runs/<uuid:run>/", runs_api.run, name="api_run"),
    path("access/v1/evaluation", authzen.evaluation, name="access_evaluation"),
    path("access/v1/evaluations", authzen.evaluations, name="access_evaluations"),
    path(".well-known/authzen-configuration", authzen.configuration, name="authzen"),
    path("versions/", versions.versions, name="versions"),
    path("workers/", workers.workers, name="workers"),
]
