"""Contracts as data: what is wrong is named, and what is not claimed is no guarantee."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciliation.core.classify import Answer, Phase, Report, classify
from reconciliation.core.contracts import parse_contract
from reconciliation.core.errors import InvalidContract
from reconciliation.core.states import TransmissionState
from reconciliation.services.contracts import SHIPPED, shipped
from tests.unit.facts import KEYED


def document(**changes: Any) -> dict[str, Any]:
    return KEYED.model_dump(mode="json") | changes


def test_a_contract_survives_being_stored() -> None:
    assert parse_contract(document(), "here") == KEYED


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"key": None}, "replay needs a key"),
        ({"version": 0}, "version"),
        ({"sources": []}, "sources"),
        ({"scope": []}, "scope"),
        ({"retention": 5}, "retention"),  # a rule that does not exist
        ({"replay": {"retention_floor_seconds": 60, "margin_seconds": 60}}, "margin_seconds"),
        ({"answers": [{"status": 400, "means": "failed"}]}, "answers.0.means"),
        ({"reviewed_on": "soon"}, "reviewed_on"),
        ({"review_again_on": "2020-01-01"}, "review_again_on must be later"),
        ({"deadlines": {"read_seconds": 0}}, "deadlines.read_seconds"),
        ({"key": {"carrier": "cookie", "name": "K"}}, "key.carrier"),
        (
            {"other_look_ups": [{"by": "list", "marker": "m", "visibility_lag_seconds": 0}]},
            "other_look_ups: each way to ask",
        ),
        ({"answers": [{"status": 200, "means": "acknowledged", "resolves": 1}]}, "answers.0"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidContract) as refused:
        parse_contract(document(**changes), "payments.yaml")
    assert str(refused.value).startswith("payments.yaml: ")
    assert named in str(refused.value)


def test_every_shipped_contract_is_valid_and_has_a_source() -> None:
    contracts = shipped()
    assert {"rehearsal-keyed", "rehearsal-lookup", "rehearsal-blind"} <= {
        contract.slug for contract in contracts
    }
    assert all(contract.sources for contract in contracts)


FILES = sorted(SHIPPED.glob("*.yaml"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_shipped_file_says_of_every_answer_whom_it_speaks_for(file: Path) -> None:
    document = yaml.safe_load(file.read_text())
    assert document["slug"] == file.stem
    assert all("resolves_earlier" in answer for answer in document["answers"])
    assert document["scope"]
    assert document["sources"]


def test_what_nobody_has_found_documented_gives_no_window() -> None:
    contracts = {contract.slug: contract for contract in shipped()}
    unpublished = ("aws-ec2", "aws-ecs", "square", "braintree", "aws-lambda-durable")
    assert all(contracts[slug].replay is None for slug in unpublished)


def test_the_two_apis_of_stripe_have_their_own_windows_and_errors() -> None:
    contracts = {contract.slug: contract for contract in shipped()}
    first, second = contracts["stripe-v1"], contracts["stripe-v2"]
    assert first.replay is not None
    assert second.replay is not None
    assert first.replay.retention_floor_seconds == 24 * 3600
    assert second.replay.retention_floor_seconds == 30 * 24 * 3600
    # A saved error of v1 speaks for the first send; one of v2 may be driven on to a success.
    declined = Report(Phase.ANSWER, Answer(402, True, True, error_type="card_error"))
    assert classify(declined, first).resolves_earlier
    assert classify(declined, second).state is TransmissionState.UNKNOWN


def test_another_way_to_ask_brings_its_own_lag() -> None:
    contract = next(contract for contract in shipped() if contract.slug == "stripe-v1")
    searched = contract.asking_by("search")
    assert contract.look_up is not None
    assert contract.look_up.visibility_lag_seconds == 0
    assert searched is not None
    assert searched.look_up is not None
    assert searched.look_up.visibility_lag_seconds == 60
    assert contract.asking_by("gossip") is None


def test_a_review_is_overdue_from_the_day_after_it() -> None:
    contract = parse_contract(document(review_again_on="2027-03-01"), "here")
    assert not contract.is_overdue(date(2027, 3, 1))
    assert contract.is_overdue(date(2027, 3, 2))
