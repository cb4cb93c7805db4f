"""The addresses of review; what each answers is said in `reconciliation.pages` and
`reconciliation.decision_pages`.

Beside those, `operation_ask` (POST) asks the provider again: 303 to `operation` + `#says`, to htmx
`_refreshed.html`. The context of an operation has `may_ask`: whether that is offered.
"""

from __future__ import annotations

from django.urls import URLPattern, path

from reconciliation.views import (
    audit,
    dispatch,
    exports,
    held_runs,
    notifications,
    operations,
    overview,
    profile,
    providers,
    review,
    search,
)

urlpatterns: list[URLPattern] = [
    path("", overview.overview, name="start"),
    path("search/", search.search, name="search"),
    path("profile/", profile.profile, name="profile"),
    path("profile/live/", profile.profile_live, name="profile_live"),
    path("review/", review.review, name="review"),
    path("review/export/", exports.queue_export, name="review_export"),
    path("audit/", audit.audit, name="audit"),
    path("notifications/", notifications.notifications, name="notifications"),
    path("notifications/digest/", notifications.choose_digest, name="notifications_digest"),
    path("audit/export/", audit.audit_export, name="audit_export"),
    path("dispatch/", dispatch.dispatch, name="dispatch"),
    path("dispatch/change/", dispatch.dispatch_change, name="dispatch_change"),
    path("providers/", providers.providers, name="providers"),
    path("providers/<slug:slug>/", providers.provider, name="provider"),
    # /runs/<id>/hold/
    path("runs/<uuid:run>/hold/", held_runs.held_run, name="held_run"),
    path("runs/<uuid:run>/hold/decide/", held_runs.held_run_decide, name="held_run_decide"),
    path("runs/<uuid:run>/hold/second/", held_runs.held_run_second, name="held_run_second"),
    path("runs/<uuid:run>/hold/correct/", held_runs.held_run_correct, name="held_run_correct"),
    path("runs/<uuid:run>/hold/draft/", held_runs.held_run_draft, name="held_run_draft"),
    # /operations/<id>/
    path("operations/<uuid:operation>/", operations.operation, name="operation"),
    path(
        "operations/<uuid:operation>/decide/", operations.operation_decide, name="operation_decide"
    ),
    path(
        "operations/<uuid:operation>/second/", operations.operation_second, name="operation_second"
    ),
    path(
        "operations/<uuid:operation>/correct/",
        operations.operation_correct,
        name="operation_correct",
    ),
    path("operations/<uuid:operation>/draft/", operations.operation_draft, name="operation_draft"),
    path("operations/<uuid:operation>/ask/", operations.operation_ask, name="operation_ask"),
    path(
        "operations/<uuid:operation>/evidence/",
        exports.operation_evidence,
        name="operation_evidence",
    ),
    path("operations/<uuid:operation>/export/", exports.operation_export, name="operation_export"),
]
