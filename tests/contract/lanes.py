"""Every adapter that speaks HTTP, with what its provider documents that it answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

from reconciliation.adapters.base import Adapter, Connection, Prepared
from reconciliation.adapters.registry import adapter_for
from reconciliation.core.addresses import Allowed
from reconciliation.core.contracts import Contract
from reconciliation.rehearsal.providers import ACTIONS
from reconciliation.services.contracts import shipped
from tests.contract.far_side import Said, Seen
from workflows.models.ids import new_id

CONTRACTS = {contract.slug: contract for contract in shipped()}
REQUEST_ID = "req_of_the_provider_1"
LOOPBACK = (Allowed.parse("*=127.0.0.1"),)
SECRET = "Xq7SecretOfTheProvider42"
OTHER = "01890000-0000-7000-8000-00000000ffff"

Shown = Callable[[Seen, Prepared, str], Said]


@dataclass(frozen=True)
class Lane:
    """One adapter under one contract.

    Attributes:
        accepted: the documented answer of success to a write.
        refused: a documented refusal without effect, and the code that is shown of it.
        shown: an answer to a look-up that shows the write with a mark; with "" none at all.
        marked: where the operation's ID is in what was sent.
    """

    adapter: str
    contract: str
    settings: Mapping[str, Any]
    action: str
    parameters: Mapping[str, Any]
    accepted: Callable[[Seen, str], Said]
    refused: tuple[Said, str]
    marked: Callable[[Seen], str]
    shown: Shown | None = None
    unmarked_is: str = "other"  # what a look-up makes of a record of another: not ours, or nothing
    account: str = "acct_1"
    region: str = ""
    credential: str = SECRET
    changes: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.adapter

    def with_contract(self) -> Contract:
        return CONTRACTS[self.contract].model_copy(update=dict(self.changes))

    def at(self, url: str, **changes: Any) -> Adapter:
        connection = Connection(
            base_url=url,
            account=self.account,
            region=self.region,
            credential=self.credential,
            settings=self.settings,
            allowed=changes.pop("allowed", LOOPBACK),
        )
        contract = self.with_contract().model_copy(update=changes)
        return adapter_for(self.adapter, connection, contract)

    def prepared(self, adapter: Adapter, operation: UUID) -> Prepared:
        return adapter.prepare(self.action, self.parameters, operation, str(operation))


def new_operation() -> UUID:
    return new_id()


def js(document: Any, status: int = 200, **headers: str) -> Said:
    return Said(
        status, {"Content-Type": "application/json", **headers}, json.dumps(document).encode()
    )


# --- generic ----------------------------------------------------------------------------------

TICKETS = {
    "actions": {
        "tickets.create": {
            "path": "/tickets",
            "marker": "custom.operation",
            "record": {"operation": "custom.operation", "title": "title", "amount": "amount"},
            "look_up": {"path": "/tickets?operation={operation}", "items": "tickets"},
        }
    },
    "auth": {"scheme": "header", "header": "X-Api-Key"},
}


def ticket(mark: str) -> dict[str, Any]:
    return {"id": "t_1", "title": "Broken", "amount": 125, "custom": {"operation": mark}}


GENERIC = Lane(
    adapter="http",
    contract="generic-lookup",
    settings=TICKETS,
    action="tickets.create",
    parameters={"title": "Broken", "amount": 125},
    accepted=lambda _seen, mark: js(ticket(mark), 201),
    refused=(js({"error": {"type": "invalid", "code": "title_too_long"}}, 400), "title_too_long"),
    marked=lambda seen: json.loads(seen.body)["custom"]["operation"],
    shown=lambda _seen, _sent, mark: js({"tickets": [ticket(mark)] if mark else []}),
)

# --- the rehearsal destination ----------------------------------------------------------------


def machine(mark: str) -> dict[str, Any]:
    return {"id": "m_1", "name": "w1", "size": "s", "metadata": {"operation": mark}}


REHEARSAL = Lane(
    adapter="rehearsal",
    contract="rehearsal-lookup",
    settings={"actions": ACTIONS["lookup"]},
    action="machines.create",
    parameters={"name": "w1", "size": "s"},
    accepted=lambda _seen, mark: js(machine(mark), 201, **{"Request-Id": REQUEST_ID}),
    refused=(
        js({"error": {"type": "invalid_request_error"}}, 400, **{"Request-Id": REQUEST_ID}),
        "invalid_request_error",
    ),
    marked=lambda seen: json.loads(seen.body)["metadata"]["operation"],
    shown=lambda _seen, _sent, mark: js({"data": [machine(mark)] if mark else []}),
)

# --- Stripe -----------------------------------------------------------------------------------


def refund(mark: str) -> dict[str, Any]:
    metadata = {"romulus_operation": mark}
    return {"id": "re_1", "object": "refund", "amount": 12500, "metadata": metadata}


def declined(status: int, kind: str, code: str) -> Said:
    return js({"error": {"type": kind, "code": code}}, status, **{"Request-Id": REQUEST_ID})


STRIPE_V1 = Lane(
    adapter="stripe-v1",
    contract="stripe-v1",
    settings={
        "actions": {"refunds.create": {"path": "/v1/refunds", "record": {"amount": "amount"}}},
        "headers": {"Stripe-Version": "2026-08-27.clover"},
    },
    action="refunds.create",
    parameters={"charge": "ch_1", "amount": 12500},
    accepted=lambda _seen, mark: js(refund(mark), **{"Request-Id": REQUEST_ID}),
    refused=(declined(402, "card_error", "card_declined"), "card_declined"),
    marked=lambda seen: parse_qs(seen.body.decode())["metadata[romulus_operation]"][0],
    shown=lambda _seen, _sent, mark: js(
        {"data": [refund(mark)] if mark else [], "has_more": False}
    ),
)

STRIPE_V2 = Lane(
    adapter="stripe-v2",
    contract="stripe-v2",
    settings={
        "actions": {"payments.create": {"path": "/v2/payments", "record": {"amount": "amount"}}}
    },
    action="payments.create",
    parameters={"amount": 12500},
    accepted=lambda _seen, mark: js(refund(mark), **{"Request-Id": REQUEST_ID}),
    refused=(declined(400, "invalid_request_error", "parameter_missing"), "parameter_missing"),
    marked=lambda seen: json.loads(seen.body)["metadata"]["romulus_operation"],
)

# --- Amazon -----------------------------------------------------------------------------------

NAMESPACE = 'xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"'
KEYS = f"AKIDEXAMPLEEXAMPLE:{SECRET}"


def reservation(mark: str, image: str = "ami-1") -> str:
    return (
        "<reservationId>r-1</reservationId><ownerId>123456789012</ownerId><instancesSet><item>"
        f"<instanceId>i-1</instanceId><imageId>{image}</imageId><clientToken>{mark}</clientToken>"
        "<instanceState><name>running</name></instanceState><tagSet><item>"
        f"<key>romulus_operation</key><value>{mark}</value></item></tagSet></item></instancesSet>"
    )


def xml(name: str, inner: str, status: int = 200) -> Said:
    text = f"<{name} {NAMESPACE}><requestId>{REQUEST_ID}</requestId>{inner}</{name}>"
    return Said(status, {"Content-Type": "text/xml"}, text.encode())


def ec2_shown(_seen: Seen, _sent: Prepared, mark: str) -> Said:
    item = f"<item>{reservation(mark)}</item>" if mark else ""
    return xml("DescribeInstancesResponse", f"<reservationSet>{item}</reservationSet>")


EC2 = Lane(
    adapter="aws-ec2",
    contract="aws-ec2",
    settings={"actions": {"instances.run": {"parameters": {"InstanceType": "t3.micro"}}}},
    action="instances.run",
    parameters={"ImageId": "ami-1"},
    accepted=lambda _seen, mark: xml("RunInstancesResponse", reservation(mark)),
    refused=(
        Said(
            400,
            {},
            b"<Response><Errors><Error><Code>InvalidAMIID.NotFound</Code></Error></Errors>"
            b"<RequestID>" + REQUEST_ID.encode() + b"</RequestID></Response>",
        ),
        "InvalidAMIID.NotFound",
    ),
    marked=lambda seen: parse_qs(seen.body.decode())["TagSpecification.1.Tag.1.Value"][0],
    shown=ec2_shown,
    account="123456789012",
    region="us-east-1",
    credential=KEYS,
)


def amz(document: Any, status: int = 200) -> Said:
    return js(document, status, **{"x-amzn-RequestId": REQUEST_ID})


def fault(kind: str) -> Said:
    return amz({"__type": f"com.amazonaws.v1#{kind}", "message": "no"}, 400)


DYNAMODB = Lane(
    adapter="aws-dynamodb",
    contract="aws-dynamodb",
    settings={"actions": {"orders.put": {"table": "orders", "key": ["order"]}}},
    action="orders.put",
    parameters={"order": "ORD-1", "amount": 125},
    accepted=lambda _seen, _mark: amz({}),
    refused=(fault("ConditionalCheckFailedException"), "ConditionalCheckFailedException"),
    marked=lambda seen: json.loads(seen.body)["Item"]["romulus_operation"]["S"],
    shown=lambda _seen, _sent, mark: amz(
        {
            "Item": {
                "order": {"S": "ORD-1"},
                "amount": {"N": "125"},
                "romulus_operation": {"S": mark},
            }
        }
        if mark
        else {}
    ),
    unmarked_is="unavailable",
    region="us-east-1",
    credential=KEYS,
)


def s3_shown(_seen: Seen, sent: Prepared, mark: str) -> Said:
    headers = {"x-amz-request-id": REQUEST_ID}
    if not mark:
        return Said(404, headers, b"<Error><Code>NoSuchKey</Code></Error>")
    marks = {"ETag": '"1"', "x-amz-meta-romulus-operation": mark}
    return Said(206, headers | marks | {"Content-Range": f"bytes 0-0/{len(sent.body)}"}, b"{")


S3 = Lane(
    adapter="aws-s3",
    contract="aws-s3",
    settings={"actions": {"reports.put": {"bucket": "reports"}}},
    action="reports.put",
    parameters={"key": "2026/november.json", "body": {"total": 125}},
    accepted=lambda _seen, _mark: Said(200, {"x-amz-request-id": REQUEST_ID, "ETag": '"abc"'}, b""),
    refused=(
        Said(
            412,
            {"x-amz-request-id": REQUEST_ID},
            b"<Error><Code>PreconditionFailed</Code></Error>",
        ),
        "PreconditionFailed",
    ),
    marked=lambda seen: seen.headers["x-amz-meta-romulus-operation"],
    shown=s3_shown,
    unmarked_is="unavailable",
    region="us-east-1",
    credential=KEYS,
)

MACHINE = "arn:aws:states:us-east-1:123456789012:stateMachine:billing"


def started(mark: str) -> str:
    return MACHINE.replace("stateMachine", "execution") + f":{mark}"


def execution(_seen: Seen, _sent: Prepared, mark: str) -> Said:
    if not mark:
        return fault("ExecutionDoesNotExist")
    given = json.dumps({"order": "ORD-1"})
    return amz({"executionArn": started(mark), "name": mark, "input": given})


STEP_FUNCTIONS = Lane(
    adapter="aws-step-functions",
    contract="aws-step-functions",
    settings={"actions": {"billing.start": {"state_machine": MACHINE}}},
    action="billing.start",
    parameters={"order": "ORD-1"},
    accepted=lambda _seen, mark: amz({"executionArn": started(mark), "startDate": 1.0}),
    refused=(fault("StateMachineDoesNotExist"), "StateMachineDoesNotExist"),
    marked=lambda seen: json.loads(seen.body)["name"],
    shown=execution,
    region="us-east-1",
    credential=KEYS,
)

LANES = (GENERIC, REHEARSAL, STRIPE_V1, STRIPE_V2, EC2, DYNAMODB, S3, STEP_FUNCTIONS)
