"""The thread of a held case: what people say, ask and answer."""

from __future__ import annotations

from http import HTTPStatus
from uuid import UUID, uuid4

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from reconciliation import access
from reconciliation.core.errors import InvalidRequest
from reconciliation.core.review_work import NoteKind
from reconciliation.models import CaseNote, Hold
from reconciliation.queue_pages import WorkForm
from reconciliation.review_forms import AskForm, TextForm
from reconciliation.selectors.queue import subject_of, url_of
from reconciliation.selectors.thread import case_of, thread_at
from reconciliation.services.notes import answer, ask, comment
from reconciliation.views.review_case import page_for
from reconciliation.views.working import back_from, work
from workflows.services.clock import database_now
from workflows.views.requests import SeeOther, SignedIn

asks_or_does = require_http_methods(["GET", "HEAD", "POST"])


@login_required
@asks_or_does
def review_notes(request: SignedIn, hold: UUID) -> HttpResponse:
    """The thread; POST adds a comment."""
    found = access.hold_for(request.user, hold)
    if request.method != "POST":
        return shown(request, found)
    form = TextForm(request.POST)
    if not form.is_valid():
        return refused(request, found, str(next(iter(form.errors.values()))[0]))
    try:
        comment(found, request.user, form.cleaned_data["text"], form.cleaned_data["token"])
    except InvalidRequest as error:
        return refused(request, found, str(error))
    if not request.htmx:
        return SeeOther(f"{home_of(found)}#notes")
    return shown(request, found)


def refused(request: SignedIn, hold: Hold, error: str) -> HttpResponse:
    """422: nothing was kept; what was typed stays."""
    return shown(request, hold, error=error, typed=request.POST.get("text", ""))


def shown(request: SignedIn, hold: Hold, *, error: str = "", typed: str = "") -> HttpResponse:
    now = database_now()
    fragment = "reconciliation/_case_notes.html"
    template = fragment if request.htmx else "reconciliation/case_notes.html"
    context = {
        "thread": thread_at(case_of(hold), request.user, now, of=hold.pk, error=error, typed=typed),
        "title": subject_of(hold),
        "url": url_of(hold),
        "now": now,
    }
    status = HTTPStatus.UNPROCESSABLE_ENTITY if error else HTTPStatus.OK
    return render(request, template, context, status=status)


def home_of(hold: Hold) -> str:
    """Where the thread of a case is read: on its own page where that shows it."""
    return url_of(hold) if hold.event_id is None else reverse("review_notes", args=[hold.pk])


@login_required
@asks_or_does
def review_ask(request: SignedIn, hold: UUID) -> HttpResponse:
    """Ask one person for information."""
    found = access.hold_for(request.user, hold)
    people = access.viewers_of(found)
    form = AskForm(request.POST or None, people, initial={"token": uuid4()})
    lines = ("The case shows the question until somebody answers it. It waits for nothing.",)
    page = page_for(request, found, "review_ask", "Ask for information", "Ask", "Asked", lines)

    def do() -> None:
        given = form.cleaned_data
        ask(found, request.user, given["to"], given["text"], given["token"])

    return work(request, page, form, do)


@login_required
@asks_or_does
def review_answer(request: SignedIn, note: UUID) -> HttpResponse:
    """Answer a question."""
    question = question_for(request, note)
    form = TextForm(request.POST or None, initial={"token": uuid4()})
    page = WorkForm(
        title="Answer a question",
        subject=subject_of(question.hold),
        url=reverse("review_answer", args=[question.pk]),
        button="Answer",
        done=f"Answered: {subject_of(question.hold)}",
        back=back_from(request, home_of(question.hold)),
        lines=(f"{question.by_name} asks: {question.text}",),
    )

    def do() -> None:
        answer(question, request.user, form.cleaned_data["text"], form.cleaned_data["token"])

    return work(request, page, form, do)


def question_for(request: SignedIn, note: UUID) -> CaseNote:
    """Raises `Http404` when there is none of a case that this person may see."""
    found = CaseNote.objects.filter(
        pk=note, kind=NoteKind.QUESTION, hold__in=access.visible_holds(request.user)
    ).first()
    if found is None:
        raise Http404
    found.hold = access.hold_for(request.user, found.hold_id)
    return found
