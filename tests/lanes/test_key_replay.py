"""Key replay with mismatch: DynamoDB's transaction token of ministack, through boto3.

Nothing shows afterwards who has added to a counter, so only the token can settle a lost answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from tests.lanes.clients import DynamoCounter
from tests.lanes.counterparts import ministack
from tests.lanes.playing import REPLAYED, SETTLED, VARIANTS, Lane, ends, lane

pytestmark = [pytest.mark.django_db, pytest.mark.lanes]

CONTRACT = {
    "key": {"carrier": "body", "name": "ClientRequestToken", "max_length": 36},
    "replay": {"retention_floor_seconds": 600, "margin_seconds": 60, "overlaps": True},
    "answers": [
        {"status": "2xx", "means": "acknowledged", "resolves_earlier": True},
        {
            "status": 400,
            "error_code": "IdempotentParameterMismatchException",
            "means": "key_mismatch",
        },
        {"status": 400, "error_code": "TransactionInProgressException", "means": "in_flight"},
    ],
}
COUNTER = {"table": "lane", "id": "{unique}", "more": 1}


@pytest.fixture(scope="module")
def dynamo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with ministack(tmp_path_factory.mktemp("ministack")) as url:
        client = boto3.client(
            "dynamodb",
            endpoint_url=url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
        )
        client.create_table(
            TableName="lane",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        yield client


@pytest.fixture
def counter(dynamo: Any) -> Lane:
    return lane(DynamoCounter, dynamo.meta.endpoint_url, COUNTER, CONTRACT)


def test_the_token_settles_what_was_lost_and_refuses_other_parameters(
    counter: Lane, dynamo: Any
) -> None:
    played, outcome = counter.play("plain", "same_key_twice", "other_parameters", *VARIANTS)
    # Its answers name nothing: what was done is what the counters say.
    assert {
        name: (run, operation, ledger, requests)
        for name, (run, operation, ledger, _, requests) in ends(played).items()
    } == {
        name: (each[0], each[1], each[2], each[4])
        for name, each in {
            "plain": SETTLED,
            "same_key_twice": SETTLED,
            "other_parameters": SETTLED,
            "lost_answer": REPLAYED,
            "never_arrived": REPLAYED,
            "late_answer": REPLAYED,
        }.items()
    }
    counters = dynamo.scan(TableName="lane")["Items"]
    assert [each["times"]["N"] for each in counters] == ["1"] * len(played)
    assert (outcome.claims["mismatch"], outcome.breaches) == ("confirmed", 0)
