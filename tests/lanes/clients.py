"""Adapters that speak through a provider's own client, as a third party might write them.

Their clients' retries are off, which the lanes prove by counting. Only what these clients are
certain of is told as "not sent": that no connection came about. Every other error leaves the
outcome unknown, whatever it is called.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import boto3
import stripe
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from reconciliation.adapters.base import Adapter, Prepared, Transmitted, Unavailable, Verified
from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.matching import Found

Document = dict[str, Any]
NOT_FOUND = frozenset({"404", "NoSuchKey", "ExecutionDoesNotExist", "ResourceNotFoundException"})


class ClientAdapter(Adapter):
    """What the lanes' adapters share: the request is kept as its call's arguments."""

    def check(self) -> list[str]:
        return []

    def prepare(
        self, action: str, parameters: Mapping[str, Any], operation: UUID, key: str
    ) -> Prepared:
        arguments = self.arguments(dict(parameters), str(operation), key)
        return Prepared("CALL", action, {}, json.dumps(arguments).encode(), self.meant(parameters))

    def meant(self, parameters: Mapping[str, Any]) -> Document:
        """What the provider's records show of the parameters."""
        return {}

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:
        return Unavailable("not in these lanes")

    @abstractmethod
    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        """The arguments of the client's call."""


# --- AWS ----------------------------------------------------------------------------------------


class Boto(ClientAdapter):
    """A service of AWS through boto3."""

    service: str
    attempts = 1  # of boto3 itself: its retries are off

    def client(self, seconds: float) -> Any:
        return boto3.client(
            self.service,
            endpoint_url=self.connection.base_url,
            region_name="us-east-1",
            aws_access_key_id="testing",
            aws_secret_access_key="testing",
            config=Config(
                retries={"total_max_attempts": self.attempts},
                connect_timeout=seconds,
                read_timeout=seconds,
            ),
        )

    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        arguments = json.loads(prepared.body)
        try:
            answer = self.send(self.client(seconds), arguments)
        except EndpointConnectionError:
            return Transmitted(Report(Phase.CONNECT), detail="no connection")
        except ClientError as error:
            return self.refused(error)
        except BotoCoreError as error:
            return Transmitted(Report(Phase.SEND), detail=type(error).__name__)
        record = self.made(arguments, answer)
        known = answer["ResponseMetadata"]
        return Transmitted(
            Report(Phase.ANSWER, Answer(known["HTTPStatusCode"], True, True, record.resource)),
            record,
            known.get("RequestId", ""),
        )

    def refused(self, error: ClientError) -> Transmitted:
        """An error that the service itself has named; a page of a proxy names none."""
        known, code = error.response["ResponseMetadata"], error.response["Error"]["Code"]
        authentic = "RequestId" in known and not code.isdecimal()
        answer = Answer(known["HTTPStatusCode"], authentic, True, error_code=code)
        return Transmitted(Report(Phase.ANSWER, answer), detail=code)

    def look_up(
        self, action: str, operation: UUID, seconds: float, prepared: Prepared | None = None
    ) -> list[Found] | Unavailable:
        assert prepared is not None
        try:
            return self.found(self.client(seconds), json.loads(prepared.body), str(operation))
        except ClientError as error:
            if error.response["Error"]["Code"] in NOT_FOUND:
                return []
            return Unavailable(error.response["Error"]["Code"])
        except BotoCoreError as error:
            return Unavailable(type(error).__name__)

    @abstractmethod
    def send(self, client: Any, arguments: Document) -> Document: ...

    @abstractmethod
    def made(self, arguments: Document, answer: Document) -> Found: ...

    @abstractmethod
    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]: ...


class S3Object(Boto):
    """An object that is put only where there is none of its name."""

    service = "s3"

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        return {**parameters, "IfNoneMatch": "*", "Metadata": {"operation": operation}}

    def send(self, client: Any, arguments: Document) -> Document:
        return dict(client.put_object(**arguments))

    def made(self, arguments: Document, answer: Document) -> Found:
        return Found(arguments["Key"], arguments["Metadata"]["operation"])

    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]:
        head = client.head_object(Bucket=arguments["Bucket"], Key=arguments["Key"])
        return [Found(arguments["Key"], head["Metadata"].get("operation"))]


class DynamoItem(Boto):
    """An item that is put only where there is none with its key."""

    service = "dynamodb"

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        item = {**parameters["Item"], "operation": {"S": operation}}
        absent = "attribute_not_exists(id)"
        return {**parameters, "Item": item, "ConditionExpression": absent}

    def send(self, client: Any, arguments: Document) -> Document:
        return dict(client.put_item(**arguments))

    def made(self, arguments: Document, answer: Document) -> Found:
        item = arguments["Item"]
        return Found(item["id"]["S"], item["operation"]["S"])

    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]:
        key = {"id": arguments["Item"]["id"]}
        got = client.get_item(TableName=arguments["TableName"], Key=key, ConsistentRead=True)
        item = got.get("Item")
        return [Found(item["id"]["S"], item.get("operation", {}).get("S"))] if item else []


class DynamoCounter(Boto):
    """A counter that is added to under a token; nothing shows afterwards who has added."""

    service = "dynamodb"

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        update = {
            "TableName": parameters["table"],
            "Key": {"id": {"S": parameters["id"]}},
            "UpdateExpression": "ADD times :more",
            "ExpressionAttributeValues": {":more": {"N": str(parameters["more"])}},
        }
        return {"ClientRequestToken": key, "TransactItems": [{"Update": update}]}

    def send(self, client: Any, arguments: Document) -> Document:
        return dict(client.transact_write_items(**arguments))

    def made(self, arguments: Document, answer: Document) -> Found:
        return Found(arguments["ClientRequestToken"], arguments["ClientRequestToken"])

    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]:
        raise AssertionError("it declares no look-up")


class Execution(Boto):
    """An execution of a state machine, named by the operation."""

    service = "stepfunctions"

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        return {**parameters, "name": key}

    def send(self, client: Any, arguments: Document) -> Document:
        return dict(client.start_execution(**arguments))

    def made(self, arguments: Document, answer: Document) -> Found:
        return Found(answer["executionArn"], arguments["name"])

    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]:
        machine = arguments["stateMachineArn"]
        arn = machine.replace(":stateMachine:", ":execution:") + f":{arguments['name']}"
        got = client.describe_execution(executionArn=arn)
        return [Found(got["executionArn"], got["name"])]


class Instance(Boto):
    """An instance, started under a client token and tagged with the operation."""

    service = "ec2"

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "operation", "Value": operation}]}]
        fixed = {"MinCount": 1, "MaxCount": 1, "ClientToken": key, "TagSpecifications": tags}
        return {**parameters, **fixed}

    def meant(self, parameters: Mapping[str, Any]) -> Document:
        return {"InstanceType": parameters["InstanceType"]}

    def send(self, client: Any, arguments: Document) -> Document:
        return dict(client.run_instances(**arguments))

    def made(self, arguments: Document, answer: Document) -> Found:
        return self.record(answer["Instances"][0])

    def found(self, client: Any, arguments: Document, operation: str) -> list[Found]:
        filters = [{"Name": "tag:operation", "Values": [operation]}]
        got = client.describe_instances(Filters=filters)
        return [self.record(each) for group in got["Reservations"] for each in group["Instances"]]

    @staticmethod
    def record(instance: Document) -> Found:
        tags = {tag["Key"]: tag["Value"] for tag in instance.get("Tags", [])}
        fields = {"InstanceType": instance["InstanceType"]}
        return Found(instance["InstanceId"], tags.get("operation"), fields=fields)


# --- Stripe -------------------------------------------------------------------------------------


class StripeClient(ClientAdapter):
    """Payment intents through Stripe's own client."""

    def client(self, seconds: float) -> Any:
        return stripe.StripeClient(
            self.connection.account,
            base_addresses={"api": self.connection.base_url},
            max_network_retries=0,
            http_client=stripe.RequestsClient(timeout=seconds),
        )

    def arguments(self, parameters: Document, operation: str, key: str) -> Document:
        return {"params": {**parameters, "metadata": {"operation": operation}}, "key": key}

    def meant(self, parameters: Mapping[str, Any]) -> Document:
        return {"amount": parameters["amount"], "currency": parameters["currency"]}

    def transmit(
        self, prepared: Prepared, action: str, operation: UUID, transmission: UUID, seconds: float
    ) -> Transmitted:
        given = json.loads(prepared.body)

        def create(client: Any) -> Any:
            options = {"idempotency_key": given["key"]}
            return self.create(client, given["params"], options)

        return self.sent(create, seconds)

    def create(self, client: Any, params: Document, options: Document) -> Any:
        return client.v1.payment_intents.create(params, options=options)

    def sent(self, call: Callable[[Any], Any], seconds: float) -> Transmitted:
        try:
            made = call(self.client(seconds))
        except stripe.StripeError as error:
            return self.refused(error)
        record = self.record(made)
        answer = Answer(made.last_response.code, True, True, record.resource)
        return Transmitted(
            Report(Phase.ANSWER, answer), record, made.last_response.request_id or ""
        )

    @staticmethod
    def refused(error: stripe.StripeError) -> Transmitted:
        body = error.json_body if isinstance(error.json_body, dict) else None
        if error.http_status is None or body is None:
            # Its class says nothing: the same one comes with an applied write and without.
            return Transmitted(Report(Phase.SEND), detail=type(error).__name__)
        said = body.get("error", {})
        answer = Answer(
            error.http_status,
            authentic=error.request_id is not None,
            complete=True,
            error_type=said.get("type"),
            error_code=said.get("code"),
        )
        return Transmitted(Report(Phase.ANSWER, answer), detail=str(said.get("code") or ""))

    def look_up(
        self, action: str, operation: UUID, seconds: float, prepared: Prepared | None = None
    ) -> list[Found] | Unavailable:
        try:
            listed = self.client(seconds).v1.payment_intents.list({"limit": 100})
        except stripe.StripeError as error:
            return Unavailable(type(error).__name__)
        found = [self.record(each) for each in listed.data]
        return [record for record in found if record.operation == str(operation)]

    @staticmethod
    def record(made: Any) -> Found:
        fields = {"amount": made.amount, "currency": made.currency}
        return Found(made.id, marked(made), fields=fields)


class StripeClientV2(StripeClient):
    """Outbound payments, of Stripe's API v2."""

    def meant(self, parameters: Mapping[str, Any]) -> Document:
        return {}

    def create(self, client: Any, params: Document, options: Document) -> Any:
        return client.v2.money_management.outbound_payments.create(params, options)

    @staticmethod
    def record(made: Any) -> Found:
        return Found(made.id, marked(made))


def marked(made: Any) -> str | None:
    """The operation that an object of Stripe's carries."""
    metadata = made.to_dict().get("metadata") or {}
    return dict(metadata).get("operation")
