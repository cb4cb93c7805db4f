"""When holds are told of, how much goes at once, what follows a failure, and what is written."""

from __future__ import annotations

import email
import json
from datetime import UTC, datetime, timedelta
from email.policy import default
from uuid import UUID

import pytest

from reconciliation.core.channels import (
    LONGEST_PAUSE,
    MOST_ATTEMPTS,
    Lately,
    Outcome,
    Portion,
    pause_after,
    portion,
)
from reconciliation.core.letters import (
    Item,
    Letter,
    as_html,
    as_json,
    as_slack,
    as_text,
    line,
    subject,
)
from reconciliation.core.notifications import Kind, Rung, Times, next_at, rungs_from, steps_of

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)
HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


# --- in time ----------------------------------------------------------------------------------


def test_the_steps_of_a_hold_come_in_time_and_each_at_its_own() -> None:
    times = Times(before=HOUR, on_call=15 * MINUTE, owners=HOUR, administrators=4 * HOUR)
    steps = steps_of(NOON, NOON + 4 * HOUR, NOON + 3 * HOUR, times)
    assert [(step.kind, step.rung, (step.at - NOON) / HOUR) for step in steps] == [
        (Kind.WINDOW, Rung.ASSIGNEE, 2),
        (Kind.DUE_SOON, Rung.ASSIGNEE, 3),
        (Kind.OVERDUE, Rung.ASSIGNEE, 4),
        (Kind.OVERDUE, Rung.ON_CALL, 4.25),
        (Kind.OVERDUE, Rung.OWNERS, 5),
        (Kind.OVERDUE, Rung.ADMINISTRATORS, 8),
    ]
    assert next_at(steps, NOON) == NOON + 2 * HOUR
    assert next_at(steps, NOON + 8 * HOUR) is None


@pytest.mark.parametrize(
    ("hours", "due"),
    [
        (1.9, []),
        (2, [Kind.WINDOW]),
        (3, [Kind.DUE_SOON]),  # the window is over, and nothing is said of it any more
        (4, [Kind.OVERDUE]),  # it is late: that it was due soon is no news
        (9, [Kind.OVERDUE] * 4),  # nobody looked for hours: everybody is told
    ],
)
def test_what_is_due_and_what_is_no_news_any_more(hours: float, due: list[Kind]) -> None:
    steps = steps_of(NOON, NOON + 4 * HOUR, NOON + 3 * HOUR, Times())
    assert [step.kind for step in steps if step.is_due(NOON + hours * HOUR)] == due


@pytest.mark.parametrize("before", [timedelta(), 4 * HOUR, 5 * HOUR])
def test_who_has_just_heard_of_a_hold_does_not_hear_at_once_that_it_is_due_soon(
    before: timedelta,
) -> None:
    steps = steps_of(NOON, NOON + 4 * HOUR, None, Times(before=before))
    assert Kind.DUE_SOON not in {step.kind for step in steps}


def test_the_ladder_goes_up() -> None:
    assert rungs_from(Rung.OWNERS) == (Rung.OWNERS, Rung.ADMINISTRATORS)
    assert rungs_from(Rung.ASSIGNEE)[1] is Rung.ON_CALL


# --- how much, how often ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("waiting", "lately", "portioned"),
    [
        (0, Lately(), Portion.NOTHING),
        (1, Lately(), Portion.EACH),
        (5, Lately(), Portion.EACH),
        (6, Lately(), Portion.TOGETHER),
        (500, Lately(), Portion.TOGETHER),
        (1, Lately(messages=5), Portion.EACH),
        (2, Lately(messages=5), Portion.TOGETHER),  # one more fits into the minute
        (1, Lately(messages=6), Portion.NOTHING),
        (1, Lately(messages=1, summaries=1), Portion.NOTHING),  # one summary a minute
    ],
)
def test_many_at_once_become_one(waiting: int, lately: Lately, portioned: Portion) -> None:
    assert portion(waiting, lately, per_minute=6) is portioned


def test_a_channel_that_fails_is_tried_ever_more_seldom_and_then_stops() -> None:
    failed = Outcome("It did not answer.")
    pauses = [pause_after(attempts, failed) for attempts in range(1, MOST_ATTEMPTS)]
    assert pauses[:3] == [30 * MINUTE / 60, MINUTE, 2 * MINUTE]
    assert pauses[-1] == LONGEST_PAUSE
    assert pause_after(MOST_ATTEMPTS, failed) is None
    assert pause_after(1, Outcome("It answered 410.", lasting=True)) is None
    asked = Outcome("It answered 429.", retry_after=10 * MINUTE)
    assert pause_after(1, asked) == 10 * MINUTE
    assert pause_after(1, Outcome("x", retry_after=99 * HOUR)) == LONGEST_PAUSE


# --- what is written --------------------------------------------------------------------------

EVIL = 'Refund\r\nBcc: all@example.com\n\n<script>alert("1")</script> <!channel> *x* |_`\u2028\x00'


def letter(text: str = EVIL, **changes: object) -> Letter:
    fields: dict[str, object] = {
        "id": UUID(int=7),
        "kind": "opened",
        "subject": f"Held: {text}",
        "lede": text,
        "at": NOON,
        "items": (Item(text, (("At stake", text),), "https://r.example/operations/7/"),),
        "more": 3,
        "why": text,
    }
    return Letter(**(fields | changes))  # type: ignore[arg-type]


def test_whatever_a_title_holds_it_stays_on_its_line() -> None:
    assert line(EVIL).isprintable()
    assert line("a\r\n b\tc\x00d\u2029e") == "a b c d e"
    assert line("x" * 600).endswith("…")
    assert len(line("x" * 600)) == 500
    written = subject(letter())
    assert written.isprintable()
    assert "\n" not in written
    assert email.message_from_string(f"Subject: {written}\n\n", policy=default).keys() == [
        "Subject"
    ]


def test_html_of_others_is_text() -> None:
    written = as_html(letter())
    assert "<script" not in written
    assert "&lt;script&gt;alert(&quot;1&quot;)" in written
    assert '<a href="https://r.example/operations/7/">' in written


def test_slack_gets_no_mention_and_no_link_from_others() -> None:
    text = json.loads(as_slack(letter()))["text"]
    assert "<!channel>" not in text
    assert "&lt;!channel&gt;" in text
    (link,) = (part.split(">")[0] for part in text.split("<")[1:])
    assert link.startswith("https://r.example/operations/7/|Refund")
    assert link.count("|") == 1


def test_the_text_says_case_stakes_link_and_that_nothing_is_decided_by_it() -> None:
    written = as_text(letter("Refund order 7", why="You own the queue."))
    assert written == (
        "Refund order 7\n\n"
        "Refund order 7\n  At stake: Refund order 7\n  https://r.example/operations/7/\n\n"
        "And 3 more.\n\n"
        "The link asks you to sign in. Nothing is decided by opening it, or by answering this.\n\n"
        "You own the queue.\n"
    )


def test_a_webhook_gets_a_document() -> None:
    document = json.loads(as_json(letter("Refund order 7")))
    assert document["type"] == "romulus.opened"
    assert document["timestamp"] == "2026-03-10T12:00:00Z"
    assert document["data"]["id"] == str(UUID(int=7))
    assert document["data"]["items"][0]["facts"] == {"At stake": "Refund order 7"}
    assert document["data"]["more"] == 3
