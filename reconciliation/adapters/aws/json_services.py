"""DynamoDB and Step Functions: JSON over one address, the call named in a header."""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Any, ClassVar, TypeVar
from uuid import UUID

from pydantic import Field

from reconciliation.adapters.aws.base import MARKER, OK, AwsAdapter
from reconciliation.adapters.base import Prepared, Unavailable, Verified
from reconciliation.adapters.declared import Strict
from reconciliation.adapters.requests import filled, meant
from reconciliation.adapters.wire import Exchange
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

Action = TypeVar("Action", bound=Strict)


class JsonService(AwsAdapter[Action]):
    target: ClassVar[str]

    def call(self, name: str, body: Mapping[str, Any], fields: Any = None) -> Prepared:
        headers = {
            "Content-Type": "application/x-amz-json-1.0",
            "X-Amz-Target": f"{self.target}.{name}",
        }
        return Prepared("POST", "/", headers, json.dumps(body).encode(), fields or {})

    def error_code(self, got: Exchange) -> str | None:
        document = got.document
        named = document.get("__type") if isinstance(document, dict) else None
        return str(named).rpartition("#")[2] or None if named else None

    def is_complete(self, got: Exchange) -> bool:
        return isinstance(got.document, dict)


# --- DynamoDB ---------------------------------------------------------------------------------


class ItemRead(Strict):
    """The item that an intent's precondition speaks of: `key` maps its attributes to texts that
    take parameters by name, such as {order}."""

    table: str
    key: Annotated[dict[str, str], Field(min_length=1)]


class PutItem(Strict):
    """An item that is put only where there is none with its key. `key` names its attributes."""

    table: str
    key: list[str]
    precondition: ItemRead | None = None


class DynamoDbAdapter(JsonService[PutItem]):
    """A conditional put. The key is natural: a second put of it is refused for as long as the
    item is there, and a read of it is never late."""

    service = "dynamodb"
    target = "DynamoDB_20120810"
    declares = PutItem

    def prepare(
        self,
        action: str,
        parameters: Mapping[str, Any],
        operation: UUID,
        key: str,  # noqa: ARG002 (the item's own key guards it)
    ) -> Prepared:
        declared = self.action(action)
        missing = [name for name in declared.key if name not in parameters]
        if missing:
            raise InvalidProvider(f"the item has no {', '.join(missing)}, which is its key")
        if MARKER in parameters:
            raise InvalidProvider(f"{MARKER}: Romulus sets it itself")
        item = {**parameters, MARKER: str(operation)}
        body = {
            "TableName": declared.table,
            "Item": {name: attribute(value) for name, value in item.items()},
            "ConditionExpression": "attribute_not_exists(#key)",
            "ExpressionAttributeNames": {"#key": declared.key[0]},
        }
        return self.call("PutItem", body, meant(parameters))

    def precondition_path(self, action: str, parameters: Mapping[str, Any]) -> str:
        read = self.action(action).precondition
        if read is None:
            raise InvalidProvider(f"action {action} declares no precondition, and the intent has")
        names = {name: str(value) for name, value in parameters.items()}
        key = {name: attribute(filled(text, names)) for name, text in read.key.items()}
        return json.dumps({"TableName": read.table, "Key": key, "ConsistentRead": True})

    def read_before(self, prepared: Prepared, seconds: float) -> Verified | Unavailable:
        got = self.asked(self.call("GetItem", json.loads(prepared.read_path)), None, seconds)
        if got.status not in OK or not self.is_complete(got):
            return self.not_answered(got)
        return self.as_expected(prepared, read_item(got.document.get("Item") or {}))

    def made(self, action: PutItem, prepared: Prepared, got: Exchange) -> Found | None:
        """A put shows nothing of the item; a yes to it means that it is there as it was sent."""
        if not self.is_complete(got):
            return None
        return Found(resource=name_of(action, json.loads(prepared.body)["Item"]))

    def look_up(
        self, action: str, operation: UUID, seconds: float, prepared: Prepared | None = None
    ) -> list[Found] | Unavailable:
        declared = self.action(action)
        if prepared is None:
            return Unavailable("without what was sent, its key is not known")
        sent = json.loads(prepared.body)["Item"]
        asked = {
            "TableName": declared.table,
            "Key": {name: sent[name] for name in declared.key},
            "ConsistentRead": True,
        }
        got = self.asked(self.call("GetItem", asked), operation, seconds)
        if got.status not in OK or not self.is_complete(got):
            return self.not_answered(got)
        item = got.document.get("Item")
        if item is None:
            return []
        shown = {name: plain(value) for name, value in item.items()}
        if shown.get(MARKER) != str(operation):
            return not_ours()
        return [
            self.censor.record(Found(name_of(declared, item), str(operation), fields=meant(shown)))
        ]


def not_ours() -> Unavailable:
    """Of a natural key: whether ours was there before the one that is there now is not told."""
    return Unavailable("what lies at this key carries the ID of another operation, or none")


def name_of(action: PutItem, item: Mapping[str, Any]) -> str:
    return "/".join([action.table, *(str(plain(item[name])) for name in action.key)])


def attribute(value: Any) -> dict[str, Any]:
    """A value as DynamoDB writes it."""
    match value:
        case bool():
            return {"BOOL": value}
        case None:
            return {"NULL": True}
        case int() | float() | Decimal():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case Mapping():
            return {"M": {name: attribute(inner) for name, inner in value.items()}}
        case list() | tuple():
            return {"L": [attribute(inner) for inner in value]}
        case _:
            raise InvalidProvider(f"DynamoDB has no form for {type(value).__name__}")


def plain(value: Mapping[str, Any]) -> Any:
    """What DynamoDB wrote, as plain values; numbers stay texts."""
    ((kind, inner),) = value.items()
    match kind:
        case "M":
            return {name: plain(each) for name, each in inner.items()}
        case "L":
            return [plain(each) for each in inner]
        case "NULL":
            return None
        case _:
            return inner


def read_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """An item as JSON has it, so that a number is compared as one."""
    return {name: number_or(value) for name, value in item.items()}


def number_or(value: Mapping[str, Any]) -> Any:
    if "N" not in value:
        return plain(value)
    number = Decimal(value["N"])
    return int(number) if number == number.to_integral_value() else float(number)


# --- Step Functions ---------------------------------------------------------------------------


class StartExecution(Strict):
    state_machine: str  # its ARN


class StepFunctionsAdapter(JsonService[StartExecution]):
    """The execution's name is our key: the same name and input start one execution."""

    service = "states"
    target = "AWSStepFunctions"
    declares = StartExecution

    def prepare(
        self,
        action: str,
        parameters: Mapping[str, Any],
        operation: UUID,  # noqa: ARG002 (its key is its name, and shown by it)
        key: str,
    ) -> Prepared:
        body = {
            "stateMachineArn": self.action(action).state_machine,
            "name": key,
            "input": json.dumps(parameters),
        }
        return self.call("StartExecution", body, meant(parameters))

    def made(self, action: StartExecution, prepared: Prepared, got: Exchange) -> Found | None:  # noqa: ARG002
        arn = got.document.get("executionArn") if self.is_complete(got) else None
        return Found(resource=arn) if isinstance(arn, str) and arn else None

    def look_up(
        self, action: str, operation: UUID, seconds: float, prepared: Prepared | None = None
    ) -> list[Found] | Unavailable:
        if prepared is None:
            return Unavailable("without what was sent, its name is not known")
        machine, name = self.action(action).state_machine, json.loads(prepared.body)["name"]
        arn = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
        asked = self.call("DescribeExecution", {"executionArn": arn})
        got = self.asked(asked, operation, seconds)
        if self.error_code(got) == "ExecutionDoesNotExist" and self.is_authentic(got):
            return []
        if got.status not in OK or not self.is_complete(got):
            return self.not_answered(got)
        return [self.censor.record(execution(got.document))]


def execution(document: Mapping[str, Any]) -> Found:
    try:
        given = json.loads(document.get("input") or "{}")
    except ValueError:
        given = {}
    return Found(
        resource=str(document.get("executionArn") or ""),
        operation=str(document.get("name") or ""),
        fields=meant(given) if isinstance(given, dict) else {},
    )
