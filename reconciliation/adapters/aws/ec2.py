"""EC2 RunInstances: one instance, under a client token, found again by the mark that it carries.

The token counts within a region, or within a zone where the request names a zone or a subnet; how
long is not published, so nothing is repeated on its strength alone. An instance shows its token and
its tag: a hit counts by those, since some destinations ignore a filter and return everything.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from reconciliation.adapters.aws.base import (
    MARKER,
    OK,
    AwsAdapter,
    parsed,
    query_fields,
    text_of,
)
from reconciliation.adapters.base import Prepared, Unavailable, Verified
from reconciliation.adapters.declared import Strict
from reconciliation.adapters.over_http import SHOWN
from reconciliation.adapters.requests import meant
from reconciliation.adapters.wire import Exchange
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

VERSION = "2016-11-15"
COMING = ("pending",)
RUNNING = "running"
# Where an instance shows what a parameter said.
SHOWN_AT = {
    "ImageId": "imageId",
    "InstanceType": "instanceType",
    "SubnetId": "subnetId",
    "KeyName": "keyName",
    "Placement.AvailabilityZone": "placement/availabilityZone",
}


class RunInstances(Strict):
    """`parameters` go into every request, beside those of the write."""

    parameters: dict[str, Any] = {}


class Ec2Adapter(AwsAdapter[RunInstances]):
    service = "ec2"
    declares = RunInstances

    def prepare(
        self, action: str, parameters: Mapping[str, Any], operation: UUID, key: str
    ) -> Prepared:
        given = {**self.action(action).parameters, **parameters}
        for name in ("MinCount", "MaxCount"):
            if str(given.setdefault(name, 1)) != "1":
                raise InvalidProvider(f"{name}: one operation is one instance")
        taken = {"ClientToken", "TagSpecification", "Action", "Version", "DryRun"} & set(given)
        if taken:
            raise InvalidProvider(f"{', '.join(sorted(taken))}: Romulus sets it itself")
        tag = {"Key": MARKER, "Value": str(operation)}
        whole = given | {
            "ClientToken": key,
            "TagSpecification": [{"ResourceType": "instance", "Tag": [tag]}],
        }
        return query("RunInstances", whole, meant(parameters))

    def made(self, action: RunInstances, prepared: Prepared, got: Exchange) -> Found | None:  # noqa: ARG002
        records = instances(parsed(got.body))
        return records[0] if len(records) == 1 else None

    def error_code(self, got: Exchange) -> str | None:
        return text_of(parsed(got.body), "Errors/Error/Code")

    def request_id(self, got: Exchange) -> str:
        """EC2 names it in the answer itself."""
        root = parsed(got.body)
        found = text_of(root, "requestId") or text_of(root, "RequestID") or ""
        return self.censor.clean(found, SHOWN)

    def is_complete(self, got: Exchange) -> bool:
        return parsed(got.body) is not None

    def look_up(
        self,
        action: str,  # noqa: ARG002 (there is one)
        operation: UUID,
        seconds: float,
        prepared: Prepared | None = None,  # noqa: ARG002
    ) -> list[Found] | Unavailable:
        filters = [{"Name": f"tag:{MARKER}", "Value": [str(operation)]}]
        got = self.asked(query("DescribeInstances", {"Filter": filters}), operation, seconds)
        root = parsed(got.body)
        if got.status not in OK or root is None:
            return self.not_answered(got)
        if text_of(root, "nextToken"):
            return Unavailable("its list has pages more, although it was asked for one instance")
        return [self.censor.record(record) for record in instances(root)]

    def verify(self, action: str, resource: str, seconds: float) -> Verified | Unavailable:  # noqa: ARG002
        got = self.asked(query("DescribeInstances", {"InstanceId": [resource]}), None, seconds)
        root = parsed(got.body)
        if got.status not in OK or root is None:
            return self.not_answered(got)
        state = text_of(root, ".//instancesSet/item/instanceState/name")
        if state is None or state in COMING:
            return Unavailable(f"{resource} is {state or 'not shown yet'}")
        return Verified(state == RUNNING, self.censor.clean(f"{resource} is {state}", 1000))


def query(action: str, values: Mapping[str, Any], fields: dict[str, Any] | None = None) -> Prepared:
    body = urlencode([("Action", action), ("Version", VERSION), *query_fields(values)])
    kind = "application/x-www-form-urlencoded; charset=utf-8"
    return Prepared("POST", "/", {"Content-Type": kind}, body.encode(), fields or {})


def instances(root: ET.Element | None) -> list[Found]:
    """Every instance that an answer shows, with its reservation's owner."""
    if root is None:
        return []
    reservations = [root] if root.find("instancesSet") is not None else root.iter("item")
    return [
        instance(item, text_of(reservation, "ownerId"))
        for reservation in reservations
        for item in reservation.findall("instancesSet/item")
    ]


def instance(item: ET.Element, owner: str | None) -> Found:
    tags = {text_of(tag, "key"): text_of(tag, "value") for tag in item.findall("tagSet/item")}
    return Found(
        resource=text_of(item, "instanceId") or "",
        operation=tags.get(MARKER) or text_of(item, "clientToken"),
        account=owner,
        fields={name: text_of(item, path) for name, path in SHOWN_AT.items()},
    )
