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
    holds_api,
    notifications,
    operations,
    overview,
    profile,
    provider_review,
    providers,
    review,
    review_bulk,
    review_case,
    review_notes,
    review_saved,
    search,
)

urlpatterns: list[URLPattern] = [
    path("", overview.overview, name="start"),
    path("search/", search.search, name="search"),
    path("profile/", profile.profile, name="profile"),
    path("profile/live/", profile.profile_live, name="profile_live"),
    # /review/
    path("review/", review.review, name="review"),
    path("review/filter/<slug:name>/", review.review_choices, name="review_choices"),
    path("review/views/", review_saved.review_saved, name="review_saved"),
    path("review/views/new/", review_saved.review_save, name="review_save"),
    path("review/views/<uuid:view>/remove/", review_saved.review_unsave, name="review_unsave"),
    path("review/bulk/", review_bulk.review_bulk, name="review_bulk"),
    path("review/bulk/<uuid:action>/", review_bulk.review_bulk_action, name="review_bulk_action"),
    path("review/questions/<uuid:note>/", review_notes.review_answer, name="review_answer"),
    # /review/<hold>/
    path("review/<uuid:hold>/preview/", review.review_preview, name="review_preview"),
    path("review/<uuid:hold>/notes/", review_notes.review_notes, name="review_notes"),
    path("review/<uuid:hold>/ask/", review_notes.review_ask, name="review_ask"),
    path("review/<uuid:hold>/claim/", review_case.review_claim, name="review_claim"),
    path("review/<uuid:hold>/put-back/", review_case.review_put_back, name="review_put_back"),
    path("review/<uuid:hold>/assign/", review_case.review_assign, name="review_assign"),
    path("review/<uuid:hold>/snooze/", review_case.review_snooze, name="review_snooze"),
    path("review/<uuid:hold>/wake/", review_case.review_wake, name="review_wake"),
    path("review/<uuid:hold>/remind/", review_case.review_remind, name="review_remind"),
    path("review/<uuid:hold>/reminded/", review_case.review_reminded, name="review_reminded"),
    path("review/export/", exports.queue_export, name="review_export"),
    path("api/holds/", holds_api.holds, name="api_holds"),
    path("api/holds/<uuid:hold>/", holds_api.hold, name="api_hold"),
    path("audit/", audit.audit, name="audit"),
    path("notifications/", notifications.notifications, name="notifications"),
    path("notifications/digest/", notifications.choose_digest, name="notifications_digest"),
    path("audit/export/", audit.audit_export, name="audit_export"),
    path("dispatch/", dispatch.dispatch, name="dispatch"),
    path("dispatch/change/", dispatch.dispatch_change, name="dispatch_change"),
    path("providers/", providers.providers, name="providers"),
    path("providers/<slug:slug>/", providers.provider, name="provider"),
    path("providers/<slug:slug>/review/", provider_review.provider_review, name="provider_review"),
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
