"""The adversary: a key that is silently ignored, at moto's EC2 and at localstripe.

The contracts claim what the real providers document. The probe finds that these do not keep it:
nothing is repeated after, and the marker on the object settles what was lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests.lanes.clients import Instance, StripeClient
from tests.lanes.counterparts import localstripe, moto
from tests.lanes.playing import (
    FOUND,
    HELD_WITHOUT,
    SETTLED,
    VARIANTS,
    Lane,
    ends,
    lane,
)

pytestmark = [pytest.mark.django_db, pytest.mark.lanes]

CONTRACT = {
    "key": {"carrier": "body", "name": "ClientToken", "max_length": 64},
    "replay": {"retention_floor_seconds": 86_400, "margin_seconds": 3600, "overlaps": True},
    "look_up": {"marker": "operation", "visibility_lag_seconds": 0},
    "answers": [{"status": "2xx", "means": "acknowledged", "resolves_earlier": True}],
}
SENT_ONCE = {
    "plain": SETTLED,
    "lost_answer": FOUND,
    "never_arrived": HELD_WITHOUT,
    "late_answer": FOUND,
}


@pytest.fixture(scope="module")
def ec2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with moto(tmp_path_factory.mktemp("moto")) as url:
        client = boto3.client(
            "ec2",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.describe_images()  # it reads its catalogue with the first question
        yield client


@pytest.fixture(scope="module")
def payments(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with localstripe(tmp_path_factory.mktemp("localstripe")) as url:
        yield url


def assert_found_out(played_lane: Lane) -> None:
    """The probe doubles its own effect and nothing else; replay stays off after."""
    played, outcome = played_lane.play("plain", "same_key_twice", *VARIANTS)
    assert ends(played, tuple(SENT_ONCE)) == SENT_ONCE
    assert len(played["same_key_twice"].seen.effects) == 2
    assert (outcome.claims["replay"], outcome.claims["look_up"]) == ("contradicted", "confirmed")
    provider = played_lane.keep(outcome)
    assert (provider.replay_trust, provider.contradicted_at is None) == ("", False)


def test_a_client_token_that_ec2_ignores_is_found_out(ec2: Any) -> None:
    image = ec2.describe_images()["Images"][0]["ImageId"]
    machine = {"ImageId": image, "InstanceType": "t3.micro"}
    assert_found_out(lane(Instance, ec2.meta.endpoint_url, machine, CONTRACT))


def test_an_idempotency_key_that_stripes_stand_in_ignores_is_found_out(payments: str) -> None:
    charge = {"amount": 12500, "currency": "usd"}
    assert_found_out(lane(StripeClient, payments, charge, CONTRACT, account="sk_test_lane"))
