"""How a channel is used: how much goes through it at once, and what follows when it fails. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum


class ChannelKind(StrEnum):
    EMAIL = "email"
    WEBHOOK = "webhook"
    SLACK = "slack"


class MessageState(StrEnum):
    """`waiting → sent | dropped`, each once; a test that did not arrive has `failed`.

    What waits for a channel that has stopped goes on waiting until it works again.
    """

    WAITING = "waiting"
    SENT = "sent"
    FAILED = "failed"
    DROPPED = "dropped"


# --- how much at once -------------------------------------------------------------------------

# More than so many that come together are told of as one.
SINGLES = 5


class Portion(StrEnum):
    """How what waits for a channel goes out now."""

    NOTHING = "nothing"
    EACH = "each"
    TOGETHER = "together"


@dataclass(frozen=True)
class Lately:
    """What went through a channel within the last minute."""

    messages: int = 0
    summaries: int = 0


def portion(waiting: int, lately: Lately, per_minute: int) -> Portion:
    """Each by itself while they are few; else one summary, and none other within the minute."""
    room = per_minute - lately.messages
    if not waiting or room <= 0 or lately.summaries:
        return Portion.NOTHING
    return Portion.EACH if waiting <= min(room, SINGLES) else Portion.TOGETHER


# --- when it fails ----------------------------------------------------------------------------

FIRST_PAUSE, LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)
# With the pauses between them these last some six hours: a mail server that is mended over night
# loses nothing, and whoever sees to it in the morning finds the channel stopped, with the reason.
MOST_ATTEMPTS = 12


@dataclass(frozen=True)
class Outcome:
    """What came of handing over a message.

    Attributes:
        problem: for people; empty when the other side took it.
        lasting: it will never take one: trying again is of no use.
        retry_after: what the other side asks for.
    """

    problem: str = ""
    lasting: bool = False
    retry_after: timedelta | None = None


TAKEN = Outcome()


def pause_after(attempts: int, outcome: Outcome) -> timedelta | None:
    """How long until the next try after so many; None: there is none, and the channel stops."""
    if outcome.lasting or attempts >= MOST_ATTEMPTS:
        return None
    pause: timedelta = min(FIRST_PAUSE * 2 ** (attempts - 1), LONGEST_PAUSE)
    asked = outcome.retry_after or timedelta()
    return max(pause, min(asked, LONGEST_PAUSE))
