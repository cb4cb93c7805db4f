"""The adapters of Amazon's services, against a stand-in that nobody here wrote."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import boto3
import pytest

from reconciliation.adapters.base import (
    Adapter,
    Connection,
    Prepared,
    Transmitted,
    Unavailable,
    Verified,
)
from reconciliation.adapters.registry import adapter_for
from reconciliation.core.classify import classify
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Fit, Intended, compare
from reconciliation.core.states import TransmissionState
from tests.contract.lanes import CONTRACTS, LOOPBACK, new_operation
from tests.lanes.counterparts import moto

pytestmark = pytest.mark.lanes

ACCOUNT, REGION = "123456789012", "us-east-1"
ACKNOWLEDGED, REJECTED = TransmissionState.ACKNOWLEDGED, TransmissionState.REJECTED


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("moto")) as url:
        yield url


def client(aws: str, service: str) -> Any:
    keys = {"aws_access_key_id": "testing", "aws_secret_access_key": "testing"}
    return boto3.client(service, endpoint_url=aws, region_name=REGION, **keys)


def adapter(aws: str, slug: str, settings: dict[str, Any], **changes: Any) -> Adapter:
    connection = Connection(
        aws, ACCOUNT, REGION, "testing:testing", {"actions": {"it": settings}}, LOOPBACK
    )
    made = adapter_for(slug, connection, CONTRACTS[slug].model_copy(update=changes))
    assert made.check() == []
    return made


class Write:
    def __init__(self, by: Adapter, parameters: dict[str, Any], operation: UUID) -> None:
        self.by, self.operation = by, operation
        self.prepared = by.prepare("it", parameters, operation, str(operation))

    def send(self) -> Transmitted:
        stored = Prepared.from_bytes(self.prepared.to_bytes())
        return self.by.transmit(stored, "it", self.operation, new_operation(), 20)

    def found(self) -> list[Fit]:
        found = self.by.look_up("it", self.operation, 20, self.prepared)
        assert isinstance(found, list), found
        meant = Intended(str(self.operation), ACCOUNT, REGION, self.prepared.fields)
        return [compare(meant, record, marker_required=True).fit for record in found]


def state(by: Adapter, outcome: Transmitted) -> TransmissionState:
    return classify(outcome.report, by.contract).state


def test_an_item_is_put_once_and_found_by_its_key(aws: str) -> None:
    schema = {"AttributeName": "order", "KeyType": "HASH"}
    client(aws, "dynamodb").create_table(
        TableName="orders",
        KeySchema=[schema],
        AttributeDefinitions=[{"AttributeName": "order", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    by = adapter(aws, "aws-dynamodb", {"table": "orders", "key": ["order"]})
    write = Write(by, {"order": "ORD-1", "amount": 125, "lines": [{"sku": "a"}]}, new_operation())
    assert write.found() == []
    first = write.send()
    assert (state(by, first), write.found()) == (ACKNOWLEDGED, [Fit.MATCH])
    assert first.request_id
    again = write.send()
    # It speaks for its own send alone: the item is there, and ours.
    assert (state(by, again), classify(again.report, by.contract).resolves_earlier) == (
        REJECTED,
        False,
    )
    assert write.found() == [Fit.MATCH]
    another = Write(by, {"order": "ORD-1", "amount": 7}, new_operation())
    assert state(by, another.send()) is REJECTED


def test_an_item_is_read_just_before_another_one_is_put(aws: str) -> None:
    made = client(aws, "dynamodb")
    schema = {"AttributeName": "customer", "KeyType": "HASH"}
    made.create_table(
        TableName="customers",
        KeySchema=[schema],
        AttributeDefinitions=[{"AttributeName": "customer", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    item = {"customer": {"S": "C-1"}, "state": {"S": "open"}, "credit": {"N": "12.50"}}
    made.put_item(TableName="customers", Item=item | {"blocked": {"BOOL": False}})
    read = {"table": "customers", "key": {"customer": "{customer}"}}
    settings = {"table": "orders", "key": ["order"], "precondition": read}
    by = adapter(aws, "aws-dynamodb", settings)

    def is_met(customer: str, **expected: Any) -> bool:
        parameters = {"order": "ORD-9", "customer": customer}
        prepared = by.prepare("it", parameters, new_operation(), "k")
        path = by.precondition_path("it", parameters)
        found = by.read_before(replace(prepared, expected=expected, read_path=path), 20)
        assert isinstance(found, Verified), found
        assert "12.5" not in found.detail
        return found.met

    assert is_met("C-1", state="open", credit=12.5, blocked=False)
    assert not is_met("C-1", state="closed")
    assert not is_met("C-1", credit="12.50")
    assert not is_met("C-1", blocked=0)
    assert not is_met("C-2", state="open")
    with pytest.raises(InvalidProvider, match="declares no precondition"):
        adapter(aws, "aws-dynamodb", {"table": "orders", "key": ["order"]}).precondition_path(
            "it", {}
        )
    away = adapter(aws, "aws-dynamodb", settings | {"precondition": read | {"table": "gone"}})
    path = away.precondition_path("it", {"customer": "C-1"})
    asked = Prepared("POST", "/", {}, b"", expected={"state": "open"}, read_path=path)
    assert isinstance(away.read_before(asked, 20), Unavailable)


def test_an_object_is_put_once_and_found_by_its_name(aws: str) -> None:
    client(aws, "s3").create_bucket(Bucket="reports")
    # This stand-in names no request where it says yes; S3 always does.
    by = adapter(aws, "aws-s3", {"bucket": "reports"}, request_id_header="ETag")
    write = Write(by, {"key": "2026/über & so.json", "body": {"total": 125}}, new_operation())
    assert write.found() == []
    assert state(by, write.send()) is ACKNOWLEDGED
    assert state(by, write.send()) is REJECTED
    assert write.found() == [Fit.MATCH]


def test_an_execution_is_started_once_under_its_name(aws: str) -> None:
    role = f"arn:aws:iam::{ACCOUNT}:role/any"
    flow = '{"StartAt": "a", "States": {"a": {"Type": "Wait", "Seconds": 60, "End": true}}}'
    arn = client(aws, "stepfunctions").create_state_machine(
        name="billing", definition=flow, roleArn=role
    )["stateMachineArn"]
    by = adapter(aws, "aws-step-functions", {"state_machine": arn})
    write = Write(by, {"order": "ORD-1"}, new_operation())
    assert write.found() == []
    first, again = write.send(), write.send()
    assert first.record is not None
    assert first.record == again.record
    assert write.found() == [Fit.MATCH]
    executions = client(aws, "stepfunctions").list_executions(stateMachineArn=arn)["executions"]
    assert len(executions) == 1


def test_an_instance_is_found_by_the_mark_on_itself(aws: str) -> None:
    """This stand-in ignores the client token: two sends are two instances, and both show it."""
    image = client(aws, "ec2").describe_images(Owners=["amazon"])["Images"][0]["ImageId"]
    by = adapter(aws, "aws-ec2", {"parameters": {"InstanceType": "t3.micro"}})
    write = Write(by, {"ImageId": image}, new_operation())
    assert write.found() == []
    outcome = write.send()
    assert state(by, outcome) is ACKNOWLEDGED
    assert outcome.request_id
    assert write.found() == [Fit.MATCH]
    assert outcome.record is not None
    met = by.verify("it", outcome.record.resource, 20)
    assert met == Verified(True, f"{outcome.record.resource} is running")
    write.send()
    assert write.found() == [Fit.MATCH, Fit.MATCH]
    elsewhere = {"ImageId": image, "SubnetId": "subnet-none"}
    refused = Write(by, elsewhere, new_operation()).send()
    assert "InvalidSubnetID.NotFound" in refused.detail
    assert state(by, refused) is REJECTED
