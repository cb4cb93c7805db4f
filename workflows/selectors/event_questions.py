"""What is read and asked before somebody acts on an event, or sends one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID, uuid4

from django.urls import reverse

from workflows.core.event_words import EventAction
from workflows.core.near_misses import NearMiss
from workflows.core.states import WaitState
from workflows.event_pages import Question, SendQuestion, WaitChoice
from workflows.models import Event, EventSource, Wait
from workflows.pages import Link
from workflows.selectors.event_page import url_of, waits_near, with_runs
from workflows.selectors.paging import as_uuid
from workflows.selectors.words import heading

KEEP = "Leave it as it is"
SAYS = {
    EventAction.ATTACH: (
        "Attach this event to a wait?",
        (
            "The run goes on with it at once, as if it had come by itself.",
            "Your name and reason are kept with it, as what the run rests on.",
        ),
        ("The event cannot be used for another wait afterwards.",),
        "Attach it",
    ),
    EventAction.DISMISS: (
        "Dismiss this event?",
        ("No wait takes it any more, and it leaves the list of what is to act on.",),
        ("It is kept as long as its source says, and the dismissal can be taken back.",),
        "Dismiss it",
    ),
    EventAction.RESTORE: (
        "Take the dismissal back?",
        ("It goes through matching again: a wait that is open for it by now gets it.",),
        ("That it was dismissed, and why, stays in the record.",),
        "Take it back",
    ),
    EventAction.REPLAY: (
        "Replay this event?",
        (
            "What was received is read once more, by the paths and schemas of its source as they "
            "are now.",
            "It goes through matching again: a wait that is open for what is found gets it.",
        ),
        ("What was received does not change, nor does the time at which it came.",),
        "Replay it",
    ),
}


def question_of(event: Event, action: EventAction, typed: Mapping[str, str]) -> Question:
    """The question; for attaching with the waits that it may be meant for."""
    title, happens, stays, button = SAYS[action]
    attach = action is EventAction.ATTACH
    return Question(
        event=link_of(event),
        url=url_of(event, action),
        title=title,
        happens=happens,
        stays=stays,
        button=button,
        keep=KEEP,
        waits=choices(event, typed.get("wait", "")) if attach else (),
        other=attach,
        typed=typed,
    )


def link_of(event: Event) -> Link:
    named = event.event_id or f"…{event.pk.hex[-6:]}"
    return Link(f"{event.type or 'Event'} {named}", reverse("event", args=[event.pk]))


def choices(event: Event, chosen: str) -> tuple[WaitChoice, ...]:
    """Those that it fits, those that it came close to, and the one that was chosen before."""
    could, close = waits_near(event)
    listed = [
        *((wait, "It fits.") for wait in could),
        *((wait, note_of(miss)) for wait, miss in close),
    ]
    wanted = as_uuid(chosen)
    if wanted is not None and wanted not in {wait.pk for wait, _ in listed}:
        others = with_runs(Wait.objects.filter(pk=wanted, tenant=event.tenant_id))
        listed += [(wait, "") for wait in others.filter(state=WaitState.WAITING)]
    return tuple(choice(wait, note, chosen=wait.pk == wanted) for wait, note in listed)


def note_of(miss: NearMiss) -> str:
    return miss.nearness.sentence


def choice(wait: Wait, note: str, *, chosen: bool) -> WaitChoice:
    types = " or ".join(wait.event_types)
    expects = f"expects {types} “{wait.correlation}”."
    label = f"{heading(wait.run)}, {wait.step}"
    return WaitChoice(wait.pk, label, f"{expects} {note}".strip(), chosen=chosen)


def wait_named(event: Event, typed: Mapping[str, str]) -> UUID | None:
    """The wait that was chosen, or the open one of the run that was named; None for neither."""
    wanted = as_uuid(typed.get("wait", ""))
    if wanted is not None:
        return wanted
    run = as_uuid(typed.get("run", "").strip())
    if run is None:
        return None
    open_waits = Wait.objects.filter(run=run, tenant=event.tenant_id, state=WaitState.WAITING)
    return open_waits.values_list("pk", flat=True).first()


def send_question(
    sources: Sequence[EventSource], typed: Mapping[str, str], errors: Mapping[str, str]
) -> SendQuestion:
    """`sources`: the internal ones that the reader may send events of."""
    token = typed.get("token") or uuid4().hex
    links = tuple(Link(source.name, source.slug) for source in sources)
    return SendQuestion(sources=links, token=token, typed=typed, errors=errors)
