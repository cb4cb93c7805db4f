"""Natural key and look-up: S3, DynamoDB and Step Functions of moto, through boto3.

A second write of the same key is refused as "already exists", which may be our own success. The
record at the key says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import boto3
import pytest

from reconciliation.models import Operation
from tests.lanes.clients import Boto, DynamoItem, Execution, S3Object
from tests.lanes.counterparts import moto
from tests.lanes.playing import FOUND, REPLAYED, SETTLED, VARIANTS, Lane, ends, lane

pytestmark = [pytest.mark.django_db, pytest.mark.lanes]

KEPT_SECONDS = 90 * 86_400
# The names of what they write are the natural keys.
CONTRACT = {
    "key": {"carrier": "body", "name": "the natural key"},
    "replay": {"retention_floor_seconds": KEPT_SECONDS, "margin_seconds": 3600, "overlaps": True},
    "look_up": {"marker": "operation", "visibility_lag_seconds": 0},
    "answers": [
        {"status": "2xx", "means": "acknowledged"},
        {"status": 412, "error_code": "PreconditionFailed", "means": "exists"},
        {"status": 400, "error_code": "ConditionalCheckFailedException", "means": "exists"},
        {"status": 400, "error_code": "ExecutionAlreadyExists", "means": "exists"},
    ],
}
MACHINE = '{"StartAt": "end", "States": {"end": {"Type": "Pass", "End": true}}}'
ROLE = "arn:aws:iam::123456789012:role/lane"


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("moto")) as url:
        service("s3", url).create_bucket(Bucket="lane")
        service("dynamodb", url).create_table(
            TableName="lane",
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            BillingMode="PAY_PER_REQUEST",
        )
        service("stepfunctions", url).create_state_machine(
            name="lane", definition=MACHINE, roleArn=ROLE
        )
        yield url


def service(name: str, url: str) -> Any:
    return boto3.client(
        name,
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",
    )


# The adapter, the write, and what a second send is answered: an execution of the same name and
# input is answered as the first one was.
LANES: list[tuple[type[Boto], dict[str, Any], str]] = [
    (S3Object, {"Bucket": "lane", "Key": "{unique}", "Body": "a report"}, "exists"),
    (DynamoItem, {"TableName": "lane", "Item": {"id": {"S": "{unique}"}}}, "exists"),
    (
        Execution,
        {
            "stateMachineArn": "arn:aws:states:us-east-1:123456789012:stateMachine:lane",
            "input": '{"of": "{unique}"}',
        },
        "acknowledged",
    ),
]


@pytest.fixture(params=LANES, ids=lambda given: given[0].__name__)
def natural(request: pytest.FixtureRequest, aws: str) -> tuple[Lane, str]:
    """The lane, and what a second send is answered in it."""
    adapter, parameters, again = request.param
    return lane(adapter, aws, parameters, CONTRACT), again


def test_a_lost_answer_is_found_and_what_never_arrived_is_sent_again(
    natural: tuple[Lane, str],
) -> None:
    played, outcome = natural[0].play("plain", "same_key_twice", *VARIANTS)
    assert ends(played, ("plain", *VARIANTS)) == {
        "plain": SETTLED,
        "lost_answer": FOUND,
        "never_arrived": REPLAYED,
        "late_answer": FOUND,
    }
    assert (outcome.breaches, outcome.claims["look_up"]) == (0, "confirmed")


def test_already_exists_after_a_lost_answer_is_our_own_success(
    natural: tuple[Lane, str],
) -> None:
    made, again = natural
    played, _ = made.play("plain", "same_key_twice", "look_up_back")
    case = played["look_up_back"]
    assert (case.seen.run, case.seen.operation, len(case.seen.effects)) == (
        "completed",
        "verified",
        1,
    )
    operation = Operation.objects.get(pk=case.operation)
    meanings = list(operation.transmissions.order_by("number").values_list("meaning", flat=True))
    assert meanings == ["unknown", again]


class RetryingS3(S3Object):
    """A client whose own retries somebody has forgotten to turn off."""

    attempts = 2


def test_a_client_that_sends_again_by_itself_is_found(aws: str) -> None:
    retrying = lane(RetryingS3, aws, LANES[0][1], CONTRACT)
    played, outcome = retrying.play("plain", "lost_answer")
    assert played["lost_answer"].breaches == [
        "2 requests left for 1 transmissions: something sends by itself"
    ]
    assert outcome.breaches == 1
    assert retrying.keep(outcome).replay_trust == ""
