"""S3: an object that is put only where there is none of its name, with our ID in its metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote
from uuid import UUID

from reconciliation.adapters.aws.base import MARKER, OK, AwsAdapter, parsed, text_of
from reconciliation.adapters.aws.json_services import not_ours
from reconciliation.adapters.base import Prepared, Unavailable
from reconciliation.adapters.declared import Strict
from reconciliation.adapters.over_http import SHOWN
from reconciliation.adapters.wire import Exchange
from reconciliation.core.errors import InvalidProvider
from reconciliation.core.matching import Found

MARK = f"x-amz-meta-{MARKER.replace('_', '-')}"


class PutObject(Strict):
    """The parameters of a write are `key`, and `body` as text or as anything JSON holds."""

    bucket: str
    content_type: str = "application/json"


class S3Adapter(AwsAdapter[PutObject]):
    service = "s3"
    declares = PutObject

    def prepare(
        self,
        action: str,
        parameters: Mapping[str, Any],
        operation: UUID,
        key: str,  # noqa: ARG002 (the object's own name guards it)
    ) -> Prepared:
        declared = self.action(action)
        if set(parameters) != {"key", "body"} or not parameters["key"]:
            raise InvalidProvider("an object has the parameters key and body, and no other")
        name, body = str(parameters["key"]), parameters["body"]
        if any(part in ("", ".", "..") for part in name.split("/")):
            raise InvalidProvider(f"{name!r} is not a plain name of an object")
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        path = f"/{quote(declared.bucket, safe='')}/{quote(name, safe='/-_.~')}"
        headers = {
            "Content-Type": declared.content_type,
            "If-None-Match": "*",
            MARK: str(operation),
        }
        return Prepared("PUT", path, headers, data, {"key": name, "bytes": len(data)})

    def made(self, action: PutObject, prepared: Prepared, got: Exchange) -> Found | None:  # noqa: ARG002
        return Found(resource=prepared.path[1:]) if got.header("ETag") else None

    def error_code(self, got: Exchange) -> str | None:
        return text_of(parsed(got.body), "Code")

    def look_up(
        self,
        action: str,  # noqa: ARG002 (the name is in what was sent)
        operation: UUID,
        seconds: float,
        prepared: Prepared | None = None,
    ) -> list[Found] | Unavailable:
        if prepared is None:
            return Unavailable("without what was sent, its name is not known")
        # One byte of it: unlike HEAD, the answer says what was not found, the object or the bucket.
        asked = Prepared("GET", prepared.path, {"Range": "bytes=0-0"}, b"")
        got = self.asked(asked, operation, seconds)
        if self.error_code(got) == "NoSuchKey" and self.is_authentic(got):
            return []
        if got.status not in OK or not self.is_authentic(got):
            return self.not_answered(got)
        if got.header(MARK) != str(operation):
            return not_ours()
        size = got.header("Content-Range").rpartition("/")[2]
        return [Found(prepared.path[1:], str(operation), fields={"bytes": size or None})]

    def request_id(self, got: Exchange) -> str:
        """In a header, and in an error itself."""
        root = parsed(got.body)
        named = text_of(root, "RequestId") or text_of(root, "RequestID") or ""
        return super().request_id(got) or self.censor.clean(named, SHOWN)
