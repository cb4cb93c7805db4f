"""Every behaviour that a contract permits, in every order: never two effects, never a wrong fact.

And the check itself is checked: each seeded mistake must be found. This is the quick version; the
full one is `manage.py check_model --mutants`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO

import pytest
from django.core.management import call_command

from reconciliation.core.decide import decide
from reconciliation.core.facts import Facts, Hold, HoldReason, Send
from reconciliation.core.model_best import Best
from reconciliation.core.model_check import QUICK, QUICKER, caught_by, check, share
from reconciliation.core.model_kinds import KINDS
from reconciliation.core.model_mutants import MUTANTS
from reconciliation.core.model_nodes import Model, Rules
from workflows.management.base import Refused

ENOUGH_MUTANTS = 15


@pytest.mark.parametrize("name", KINDS)
def test_no_permitted_behaviour_leads_to_two_effects_or_a_wrong_fact(name: str) -> None:
    report = check(KINDS[name], bounds=QUICK)
    assert report.breaches == []
    assert report.early_holds == [], "a safe rule could still have done something by itself"
    assert report.ends["verified"]


@pytest.mark.parametrize("name", KINDS)
def test_no_rule_that_is_safe_would_settle_more(name: str) -> None:
    found = share(KINDS[name])
    assert found.settled == pytest.approx(found.most)
    # Without a key and without a look-up nothing is ever settled alone.
    assert bool(found.most) == bool(KINDS[name].replay or KINDS[name].look_up)


@pytest.mark.parametrize("name", KINDS)
def test_once_the_run_is_cancelled_nothing_is_sent_and_no_effect_is_dropped(name: str) -> None:
    def sends_nothing(facts: Facts, now: object) -> object:
        move = decide(facts, now)  # type: ignore[arg-type]
        assert not isinstance(move, Send)
        return move

    rules = Rules(decide=sends_nothing)  # type: ignore[arg-type]
    report = check(KINDS[name], rules, QUICKER, cancelled=True)
    assert report.breaches == []
    assert report.ends["dropped"]


@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_mistake_is_found(name: str) -> None:
    assert caught_by(MUTANTS[name], KINDS.values())


def test_there_are_mistakes_enough() -> None:
    assert len(MUTANTS) >= ENOUGH_MUTANTS


def test_a_rule_that_gives_up_early_settles_less_than_the_best() -> None:
    def timid(facts: Facts, now: object) -> object:
        move = decide(facts, now)  # type: ignore[arg-type]
        again = isinstance(move, Send) and facts.sent
        return Hold(HoldReason.UNGUARDED) if again else move

    rules = Rules(decide=timid)  # type: ignore[arg-type]
    found = share(KINDS["keyed"], rules)
    assert found.settled < found.most
    report = check(KINDS["keyed"], rules, QUICKER)
    assert report.breaches == []
    assert report.early_holds


def test_the_best_rule_never_sends_twice_without_a_guard() -> None:
    model = Model(QUICK.within(KINDS["blind"]), QUICK)
    assert Best(model).share(model.root()) == 0


def test_the_command_walks_a_contract_and_says_what_it_found() -> None:
    said = StringIO()
    call_command(
        "check_model", "--contract", "model-blind", "--json", stdout=said, stderr=StringIO()
    )
    document = json.loads(said.getvalue())
    (found,) = document["contracts"]
    assert (found["contract"], found["breaches"], found["is_most"]) == ("model-blind", [], True)
    with pytest.raises(Refused, match="no contract nobody"):
        call_command("check_model", "--contract", "nobody", stdout=said, stderr=StringIO())


def test_bounds_never_give_more_than_the_contract_does() -> None:
    small = KINDS["keyed"].model_copy(
        update={"budget": KINDS["keyed"].budget.model_copy(update={"transmissions": 1})}
    )
    assert replace(QUICK, sends=4).within(small).budget.transmissions == 1
