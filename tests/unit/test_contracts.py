"""Contracts as data: what is wrong is named, and what is not claimed is no guarantee."""

from __future__ import annotations

from typing import Any

import pytest

from reconciliation.core.contracts import parse_contract
from reconciliation.core.errors import InvalidContract
from reconciliation.services.contracts import shipped
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
