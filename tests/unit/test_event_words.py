"""What became of an event, in words, and what may be done about it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workflows.core.event_words import EventAction, EventFacts, offered, standing
from workflows.core.pretty import pretty_json
from workflows.core.states import EventState

ATTACH, REPLAY, DISMISS = EventAction.ATTACH, EventAction.REPLAY, EventAction.DISMISS
DISMISSED = EventFacts(EventState.STORED, dismissed_by="user:3 ada", dismissed_reason="Not ours.")

CASES = [
    (EventFacts(EventState.MATCHED), (), "It was given to the wait"),
    (EventFacts(EventState.STORED), (ATTACH, REPLAY, DISMISS), "No wait for it is open."),
    (EventFacts(EventState.LATE, "Its wait had ended."), (ATTACH, REPLAY, DISMISS), "Its wait had"),
    (
        EventFacts(EventState.STORED, ambiguous=True),
        (ATTACH, REPLAY, DISMISS),
        "More than one open wait",
    ),
    (
        EventFacts(EventState.REJECTED, "no ID at id"),
        (REPLAY, DISMISS),
        "It is authentic, but not of the shape that its source declares: no ID at id.",
    ),
    (DISMISSED, (EventAction.RESTORE,), "ada dismissed it: Not ours. No wait takes it any more."),
    (replace(DISMISSED, has_body=False), (), "ada dismissed it"),
    (EventFacts(EventState.LATE, has_body=False), (DISMISS,), "The wait that it would"),
]


@pytest.mark.parametrize(("facts", "actions", "sentence"), CASES)
def test_each_state_has_a_sentence_and_what_may_be_done(
    facts: EventFacts, actions: tuple[EventAction, ...], sentence: str
) -> None:
    assert offered(facts) == actions
    assert standing(facts).startswith(sentence)


def test_what_is_rejected_is_never_attached() -> None:
    assert ATTACH not in offered(EventFacts(EventState.REJECTED))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a":1}', '{\n  "a": 1\n}'),
        ('{ "a" : [ ] , "b":{ } }', '{\n  "a": [],\n  "b": {}\n}'),
        ("[1.10,1e400,12345678901234567890]", "[\n  1.10,\n  1e400,\n  12345678901234567890\n]"),
        (r'{"a":"{\"b\":[1,2]}\\"}', '{\n  "a": "{\\"b\\":[1,2]}\\\\"\n}'),
        ('"\\u00e9"', '"\\u00e9"'),
        ("null", "null"),
    ],
)
def test_json_is_set_out_without_changing_what_stands_in_it(text: str, shown: str) -> None:
    assert pretty_json(text) == shown
