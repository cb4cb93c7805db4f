"""What became of an event, in words: why it is where it is, and what may be done about it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from workflows.core.states import EventState
from workflows.core.words import who


class EventAction(StrEnum):
    """What a person may do to an event."""

    ATTACH = "attach"
    REPLAY = "replay"
    DISMISS = "dismiss"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True)
class EventFacts:
    """What counts of an event when it is shown or acted on."""

    state: EventState
    problem: str = ""
    ambiguous: bool = False
    dismissed_by: str = ""
    dismissed_reason: str = ""
    has_body: bool = True

    @property
    def dismissed(self) -> bool:
        return bool(self.dismissed_by)


def standing(facts: EventFacts) -> str:
    """Say in one sentence or two why the event is where it is."""
    if facts.state is EventState.MATCHED:
        return "It was given to the wait that it was for. It cannot be used for another one."
    if facts.dismissed:
        reason = f": {facts.dismissed_reason.rstrip('.')}" if facts.dismissed_reason else ""
        return f"{who(facts.dismissed_by)} dismissed it{reason}. No wait takes it any more."
    if facts.state is EventState.REJECTED:
        why = f": {facts.problem.rstrip('.')}" if facts.problem else ""
        return f"It is authentic, but not of the shape that its source declares{why}."
    if facts.ambiguous:
        return (
            "More than one open wait could take it when it came, and not all of them share theirs. "
            "None was picked: a person says which one was meant."
        )
    if facts.state is EventState.LATE:
        why = facts.problem or "The wait that it would have fitted is over."
        return f"{why} It changed nothing; a wait for the same that opens later may still take it."
    return "No wait for it is open. It is kept, and a wait that fits takes it when it opens."


def offered(facts: EventFacts) -> tuple[EventAction, ...]:
    """What may be done to it now, the most likely first."""
    if facts.state is EventState.MATCHED:
        return ()
    if facts.dismissed:
        return (EventAction.RESTORE,) if facts.has_body else ()
    if not facts.has_body:
        return (EventAction.DISMISS,)  # no step could read it
    if facts.state is EventState.REJECTED:
        return (EventAction.REPLAY, EventAction.DISMISS)
    return (EventAction.ATTACH, EventAction.REPLAY, EventAction.DISMISS)
