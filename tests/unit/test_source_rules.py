"""What a source may be set up with: each mistake is told, by its field."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.signing import HMAC_SETTINGS, SECRET, STANDARD_SECRET, TOPIC, sns_signer
from workflows.core.source_rules import Configuration, problems_of, secret_problem
from workflows.core.sources import Scheme

GOOD = Configuration(
    scheme="hmac",
    settings=HMAC_SETTINGS,
    tolerance=timedelta(minutes=5),
    id_path="id",
    type_path="type",
    correlation_path="data.order",
    schemas={
        "paid": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a"}},
            "$defs": {"a": {"type": "string"}},
        }
    },
    max_bytes=1024,
    content_types=["application/json"],
    encodings=["gzip"],
)
SNS = replace(
    GOOD, scheme="aws_sns", settings={"topics": [TOPIC]}, id_path="", content_types=["text/plain"]
)


def test_a_source_that_can_work_has_no_problem() -> None:
    assert problems_of(GOOD) == {}
    assert problems_of(SNS) == {}
    pinned = {"topics": [TOPIC], "certificates": [sns_signer().pem]}
    assert problems_of(replace(SNS, settings=pinned)) == {}
    for scheme in ("standard_webhooks", "stripe", "github", "slack"):
        named = replace(GOOD, scheme=scheme, settings={}, id_path="", type_path="")
        assert problems_of(named) == {}
    for scheme in ("bearer", "internal"):
        named = replace(GOOD, scheme=scheme, settings={})
        assert problems_of(replace(named, id_path="", type_path="", correlation_path="")) == {}


def test_a_secret_in_the_address_is_refused_with_a_reason() -> None:
    assert problems_of(replace(GOOD, scheme="path")) == {
        "scheme": [
            "A secret in the address is not offered: addresses end up in the logs of every machine "
            "on the way. Use a bearer token, or a scheme that signs."
        ]
    }


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"scheme": "morse"}, "scheme", "There is no scheme"),
        ({"settings": []}, "settings", "has to be an object"),
        ({"settings": {}}, "settings", "header: Field required"),
        ({"settings": {"header": "X Y"}}, "settings", "header"),
        ({"settings": HMAC_SETTINGS | {"algorithm": "md5"}}, "settings", "algorithm"),
        ({"settings": HMAC_SETTINGS | {"surplus": 1}}, "settings", "surplus"),
        ({"tolerance": timedelta(0)}, "tolerance", "More than nothing"),
        ({"tolerance": timedelta(days=8)}, "tolerance", "a week at most"),
        ({"id_path": "data["}, "id_path", "This is no JMESPath"),
        ({"type_path": "a b"}, "type_path", "This is no JMESPath"),
        ({"correlation_path": "`"}, "correlation_path", "This is no JMESPath"),
        ({"id_path": ""}, "id_path", "of the same event cannot be told from another event."),
        ({"type_path": ""}, "type_path", "Say where the event's type stands"),
        ({"correlation_path": ""}, "correlation_path", "Say where it stands which run"),
        ({"schemas": []}, "schemas", "Give an object"),
        ({"schemas": {"paid": True}}, "schemas", "paid: a JSON Schema is an object"),
        ({"schemas": {"paid": {"type": "text"}}}, "schemas", "paid: this is no JSON Schema"),
        ({"schemas": {"paid": {"$schema": []}}}, "schemas", "paid: its $schema is no text"),
        ({"schemas": {"": {}}}, "schemas", "A type is text"),
        ({"schemas": {"paid": {"title": "a\x00"}}}, "schemas", "NUL"),
        ({"schemas": {"paid": {"title": "\ud800"}}}, "schemas", "half a surrogate pair"),
        ({"schemas": {"paid": {"maximum": float("nan")}}}, "schemas", "NaN"),
        ({"settings": HMAC_SETTINGS | {"prefix": "\x00"}}, "settings", "NUL"),
        (
            {"schemas": {"paid": {"$ref": "https://example.com/s.json"}}},
            "schemas",
            "may only refer to its own parts",
        ),
        ({"schemas": {"paid": {"$ref": "#/$defs/b"}}}, "schemas", "which is not in it"),
        ({"max_bytes": 0}, "max_bytes", "Between 1 and"),
        ({"max_bytes": 10**9}, "max_bytes", "Between 1 and"),
        ({"content_types": []}, "content_types", "Give a list"),
        ({"content_types": "application/json"}, "content_types", "Give a list"),
        ({"content_types": ["application/json; charset=utf-8"]}, "content_types", "parameters"),
        ({"encodings": ["br"]}, "encodings", "deflate, gzip"),
        ({"encodings": "gzip"}, "encodings", "A list"),
    ],
)
def test_what_cannot_work_is_told_by_its_field(
    changes: dict[str, Any], field: str, told: str
) -> None:
    problems = problems_of(replace(GOOD, **changes))
    assert told in " ".join(problems[field])
    assert set(problems) == {field}


@pytest.mark.parametrize(
    ("changes", "field", "told"),
    [
        ({"settings": {}}, "settings", "topics: Field required"),
        ({"settings": {"topics": []}}, "settings", "topics"),
        ({"settings": {"topics": ["orders"]}}, "settings", "topics.0"),
        (
            {"settings": {"topics": [TOPIC], "certificates": ["x"]}},
            "settings",
            "number 1 is no certificate",
        ),
        ({"content_types": ["application/json"]}, "content_types", "AWS SNS sends text/plain"),
    ],
)
def test_what_sns_cannot_do_without_is_told(changes: dict[str, Any], field: str, told: str) -> None:
    assert told in " ".join(problems_of(replace(SNS, **changes))[field])


@pytest.mark.parametrize(
    ("scheme", "value", "told"),
    [
        (Scheme.HMAC, SECRET, ""),
        (Scheme.STANDARD_WEBHOOKS, STANDARD_SECRET, ""),
        (Scheme.HMAC, "short", "between 16 and 500"),
        (Scheme.HMAC, "x" * 501, "between 16 and 500"),
        (Scheme.BEARER, SECRET + "\n", "printable ASCII"),
        (Scheme.BEARER, SECRET + "é", "printable ASCII"),
        (Scheme.STANDARD_WEBHOOKS, SECRET + "!", "is base64"),
        (Scheme.STANDARD_WEBHOOKS, "whsec_c2hvcnQ" + "=" * 10, "is base64"),
        (Scheme.STANDARD_WEBHOOKS, "whsec_c2hvcnRzaG9ydA==", "16 bytes at least"),
        (Scheme.AWS_SNS, SECRET, "has no secret"),
    ],
)
def test_a_secret_that_cannot_be_one_is_refused_without_being_said(
    scheme: Scheme, value: str, told: str
) -> None:
    said = secret_problem(scheme, value)
    assert (told in said) if told else not said
    assert value not in said
