"""What the fault proxy can do to a request and its answer, and which requests are writes.

Pure; the wire is in `proxy`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs


class Break(StrEnum):
    """What is done to one exchange. All but the first two forward first, and then break."""

    UNAVAILABLE = "unavailable"  # answered 503 by the proxy, not forwarded
    DROP_BEFORE = "drop_before"  # closed, not forwarded
    DROP_AFTER = "drop_after"  # closed without a byte of the answer
    LATE = "late"  # the answer comes when nobody waits for it any more
    TRUNCATE = "truncate"  # half of the answer
    BAD_GATEWAY = "bad_gateway"  # a proxy's own page in place of the answer
    ANSWER_TWICE = "answer_twice"  # the answer, and the same bytes once more
    DELIVER_TWICE = "deliver_twice"  # forwarded twice; the second answer comes back


class On(StrEnum):
    """Which requests a break is for."""

    WRITES = "writes"
    READS = "reads"


# Operations of the AWS protocols that only ask, and are sent by POST all the same.
ASKING = re.compile(r"(Describe|Get|List|Query|Scan|BatchGet|Head|Lookup)")


def kind_of(method: str, headers: Mapping[str, str], body: bytes) -> On:
    """Say whether a request writes or asks; `headers` by lower-case names."""
    if method in ("GET", "HEAD", "OPTIONS"):
        return On.READS
    named = headers.get("x-amz-target", "").rpartition(".")[2] or action_in(headers, body)
    return On.READS if ASKING.match(named) else On.WRITES


def action_in(headers: Mapping[str, str], body: bytes) -> str:
    if "form-urlencoded" not in headers.get("content-type", ""):
        return ""
    return parse_qs(body.decode(errors="replace")).get("Action", [""])[0]


@dataclass(frozen=True)
class Answer:
    """What the far side answered; the proxy passes it on as it came, or does not."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300  # noqa: PLR2004 (the statuses of success)


@dataclass
class Passage:
    """One request that came to the proxy.

    Attributes:
        answers: of the far side, one for each time that it was forwarded.
    """

    kind: On
    method: str
    path: str
    broke: Break | None
    answers: tuple[Answer, ...] = ()


PAGE = b"<html><body><h1>502 Bad Gateway</h1></body></html>"
BAD_GATEWAY = Answer(502, (("Content-Type", "text/html"),), PAGE)
UNAVAILABLE = Answer(503, (("Content-Type", "text/html"),), b"<html>503</html>")
