"""Every state has a word, a tone and an icon, and they say what the interface rules say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciliation.core.states import EvidenceKind, HoldState, OperationState, TransmissionState
from romulus_site.vocabulary import TONES, VOCABULARY, word
from workflows.core.states import AttemptState, EventState, RunState, WaitState

STATIC = Path(__file__).resolve().parents[2] / "static"
SYMBOLS = set(re.findall(r'<symbol id="i-(\w+)"', (STATIC / "img/icons.svg").read_text()))
TEMPLATES = Path(__file__).resolve().parents[2] / "templates"

STATES = [
    (kind, state)
    for kind, enum in {
        "run": RunState,
        "attempt": AttemptState,
        "wait": WaitState,
        "event": EventState,
        "operation": OperationState,
        "transmission": TransmissionState,
        "evidence": EvidenceKind,
        "hold": HoldState,
    }.items()
    for state in enum
]
WORDS = [(kind, state) for kind, states in VOCABULARY.items() for state in states]


@pytest.mark.parametrize(("kind", "state"), STATES)
def test_every_state_of_the_core_has_its_word(kind: str, state: str) -> None:
    assert state in VOCABULARY[kind]


@pytest.mark.parametrize(("kind", "state"), WORDS)
def test_every_word_has_text_tone_and_a_drawn_icon(kind: str, state: str) -> None:
    shown = word(kind, state)
    assert shown.text
    assert shown.meaning
    assert shown.tone in TONES
    assert shown.icon in SYMBOLS


def test_every_icon_that_templates_name_is_drawn() -> None:
    named = {
        name
        for template in TEMPLATES.rglob("*.html")
        for name in re.findall(r'{% icon "(\w+)"', template.read_text())
    }
    assert named <= SYMBOLS


def test_only_what_is_not_known_is_hatched() -> None:
    hatched = {state for kind, state in WORDS if word(kind, state).hatched}
    assert hatched == {"unknown"}


def test_red_is_kept_for_bad_facts_that_can_be_proven() -> None:
    red = {(kind, state) for kind, state in WORDS if word(kind, state).tone == "bad"}
    assert red == {
        ("run", "failed"),
        ("attempt", "failed"),
        ("transmission", "rejected"),
        ("operation", "rejected"),
        ("operation", "postcondition_failed"),
        ("evidence", "rejection"),
        ("event", "rejected"),
        ("wrong", "double"),
        ("wrong", "check"),
    }


@pytest.mark.parametrize(
    ("kind", "state", "text"),
    [
        ("evidence", "receipt", "Match"),
        ("evidence", "lookup", "Match"),
        ("evidence", "absence", "No match"),
        ("evidence", "rejection", "Rejected"),
        ("evidence", "operator", "Person's word"),
        ("operation", "postcondition_failed", "Result check failed"),
        ("transmission", "not_sent", "Not sent"),
    ],
)
def test_states_whose_word_differs_from_their_name(kind: str, state: str, text: str) -> None:
    assert word(kind, state).text == text


def test_finding_nothing_is_quiet_and_not_green() -> None:
    assert word("evidence", "absence").tone == "quiet"


def test_a_state_that_nobody_named_shows_as_itself_and_breaks_no_page() -> None:
    assert word("run", "on_holiday").text == "On holiday"
    assert word("cat", "").text == "None"
