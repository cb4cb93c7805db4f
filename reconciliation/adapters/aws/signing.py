"""Amazon's Signature Version 4, over a request that is otherwise whole.

Checked against Amazon's own signer in `tests/contract/test_signing.py`.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Self
from urllib.parse import parse_qsl, quote

from reconciliation.adapters.wire import Request
from reconciliation.core.errors import InvalidProvider

ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True)
class Credential:
    access_key: str
    secret: str = field(repr=False)
    session: str = field(repr=False, default="")

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read ACCESS_KEY_ID:SECRET_ACCESS_KEY, with :SESSION_TOKEN behind.

        Raises:
            InvalidProvider: it is not one; says so without it.
        """
        parts = text.split(":", 2)
        if len(parts) < 2 or not all(parts):  # noqa: PLR2004 (a key and its secret)
            raise InvalidProvider("a credential as ACCESS_KEY_ID:SECRET_ACCESS_KEY[:SESSION_TOKEN]")
        return cls(*parts)


def sign(
    request: Request, authority: str, service: str, region: str, by: Credential, at: datetime
) -> Request:
    """Return the request with the headers that show who sends it; `at` is in UTC."""
    stamp = f"{at:%Y%m%dT%H%M%SZ}"
    digest = hashlib.sha256(request.body).hexdigest()
    headers = {**request.headers, "X-Amz-Date": stamp}
    if service == "s3":
        headers["X-Amz-Content-Sha256"] = digest
    if by.session:
        headers["X-Amz-Security-Token"] = by.session
    seen = {"host": authority} | {
        name.lower(): " ".join(value.split()) for name, value in headers.items()
    }
    names = ";".join(sorted(seen))
    path, _, query = request.target.partition("?")
    canonical = "\n".join(
        [
            request.method,
            # The path is quoted already; all but S3 have it quoted twice.
            path if service == "s3" else quote(path, safe="/-_.~"),
            canonical_query(query),
            *(f"{name}:{seen[name]}" for name in sorted(seen)),
            "",
            names,
            digest,
        ]
    )
    scope = f"{at:%Y%m%d}/{region}/{service}/aws4_request"
    text = "\n".join([ALGORITHM, stamp, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = f"AWS4{by.secret}".encode()
    for part in scope.split("/"):
        key = mac(key, part)
    headers["Authorization"] = (
        f"{ALGORITHM} Credential={by.access_key}/{scope}, SignedHeaders={names}, "
        f"Signature={mac(key, text).hex()}"
    )
    return replace(request, headers=headers)


def canonical_query(query: str) -> str:
    pairs = sorted(
        (quote(name, safe="-_.~"), quote(value, safe="-_.~"))
        for name, value in parse_qsl(query, keep_blank_values=True)
    )
    return "&".join(f"{name}={value}" for name, value in pairs)


def mac(key: bytes, text: str) -> bytes:
    return hmac.new(key, text.encode(), hashlib.sha256).digest()
