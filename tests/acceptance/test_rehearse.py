"""`manage.py rehearse`: real workers against the rehearsal destination, behind the fault proxy."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from reconciliation.models import Hold, Operation, Provider, Rehearsal
from tests.destination import RunningDestination
from tests.factories import ready_provider

pytestmark = pytest.mark.processes


@pytest.fixture
def site(committed_db: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The database that the rehearsal's own workers use as well."""
    monkeypatch.setenv("DATABASE_URL", committed_db)
    return committed_db


def rehearsed(provider: str, *options: str) -> dict[str, Any]:
    """Rehearse `provider`; return what the command answers with `--json`."""
    output = io.StringIO()
    call_command("rehearse", provider, "--json", *options, stdout=output, stderr=io.StringIO())
    (document,) = json.loads(output.getvalue())
    return document


def ends(document: dict[str, Any]) -> dict[str, tuple[str, str, int]]:
    """Of each case: the run, the operation, and the effects at the destination."""
    return {
        case["case"]: (
            case["run"]["state"],
            case["ledger"]["state"],
            len(case["destination"]["effects"]),
        )
        for case in document["cases"]
    }


SETTLED = ("completed", "verified", 1)
HELD = ("held", "held", 1)


def test_a_provider_that_keeps_its_keys_settles_every_case_and_is_trusted(
    site: str, destination: RunningDestination
) -> None:
    provider = ready_provider("payments", destination.url, replay_trust="", look_up_trust="")
    document = rehearsed("payments")
    assert set(ends(document).values()) == {SETTLED}
    assert document["claims"] == {
        "replay": "confirmed",
        "mismatch": "confirmed",
        "verify": "confirmed",
    }
    provider.refresh_from_db()
    assert provider.replay_trust.startswith("Shown by a rehearsal on ")
    assert not Hold.objects.filter(state="open").exists()
    assert Rehearsal.objects.get().complete


def test_a_provider_with_look_ups_alone_settles_what_was_applied_and_holds_the_rest(
    site: str, destination: RunningDestination
) -> None:
    provider = ready_provider("machines", destination.url, replay_trust="", look_up_trust="")
    names = ("killed_after_answer", "lost_answer", "never_arrived", "look_up_away")
    document = rehearsed("machines", *(f"--case={name}" for name in names))
    assert ends(document) == {
        "plain": SETTLED,
        "killed_after_answer": SETTLED,
        "lost_answer": SETTLED,
        "never_arrived": ("held", "held", 0),
        "look_up_away": HELD,
    }
    assert document["claims"]["look_up"] == "confirmed"
    provider.refresh_from_db()
    # Only a rehearsal of every case makes trust.
    assert (document["complete"], provider.look_up_trust) == (False, "")


def test_a_provider_with_neither_holds_each_answer_that_is_lost(
    site: str, destination: RunningDestination
) -> None:
    ready_provider("desk", destination.url)
    document = rehearsed("desk", "--case=lost_answer", "--case=never_arrived")
    assert ends(document) == {
        "plain": SETTLED,
        "lost_answer": HELD,
        "never_arrived": ("held", "held", 0),
    }
    assert (document["claims"], document["breaches"]) == ({}, 0)


def test_a_key_that_is_silently_ignored_is_found_and_nothing_is_repeated(
    site: str, destination: RunningDestination
) -> None:
    provider = ready_provider("payments", destination.url)
    destination.client.arm("apply_twice", times=None)
    with pytest.raises(CommandError) as refused:
        rehearsed("payments", "--case=lost_answer", "--case=killed_after_answer")
    assert refused.value.returncode == 3
    provider.refresh_from_db()
    assert (provider.replay_trust, provider.contradicted_at is None) == ("", False)
    row = Rehearsal.objects.get()
    assert row.claims["replay"] == "contradicted"
    # The probe's own second delivery made a second effect; nothing of ours did.
    doubled = [case["case"] for case in row.cases if len(case["destination"]["effects"]) > 1]
    assert doubled == ["same_key_twice"]
    lost = Operation.objects.get(run__labels__case="lost_answer")
    assert (lost.state, lost.transmissions.count()) == ("abandoned", 1)


def test_what_cannot_be_rehearsed_is_refused(committed_db: str) -> None:
    ready_provider("payments", adapter="http")
    with pytest.raises(CommandError, match="payments has no sandbox: set one up"):
        call_command("rehearse", "payments")
    with pytest.raises(CommandError, match=r"Name a provider.* There are: payments"):
        call_command("rehearse")
    with pytest.raises(CommandError, match="No provider has a sandbox"):
        call_command("rehearse", "--all")
    assert not Provider.objects.filter(slug="payments-rehearsal").exists()


def test_a_destination_that_may_not_be_called_from_here_is_not_rehearsed(
    committed_db: str, destination: RunningDestination, settings: Settings
) -> None:
    """Workers that may call it would make effects, and no probe would come there."""
    provider = ready_provider("payments", destination.url)
    settings.ROMULUS_ALLOWED_ADDRESSES = []
    with pytest.raises(CommandError, match=r"payments cannot be rehearsed at http://127.*ALLOWED"):
        rehearsed("payments")
    provider.refresh_from_db()
    assert (provider.contradicted_at, Rehearsal.objects.count()) == (None, 0)
    assert destination.client.effects() == []
