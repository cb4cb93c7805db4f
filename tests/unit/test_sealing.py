"""Sealed bytes, keyed digests, and what people may see of parameters (promise P9)."""

from __future__ import annotations

from typing import Any

import pytest
from cryptography.fernet import InvalidToken
from pytest_django import Settings

from reconciliation.sealing import REDACTED, canonical, derive, digest, redact, seal, unseal

OLD, NEW = "the-old-key-of-this-test", "the-new-key-of-this-test"
SECRET = b'{"card": "4111 1111 1111 1111"}'


@pytest.fixture(autouse=True)
def keys(settings: Settings) -> Settings:
    settings.ROMULUS_KEYS = [OLD]
    return settings


# --- seals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"\x00\xff", SECRET, b"x" * 100_000])
def test_what_was_sealed_is_unsealed_byte_for_byte(data: bytes) -> None:
    assert unseal(seal(data)) == data
    assert unseal(memoryview(seal(data))) == data  # as the database gives it


def test_a_seal_hides_what_it_holds_and_never_looks_the_same_twice() -> None:
    first, second = seal(SECRET), seal(SECRET)
    assert b"4111" not in first
    assert first != second


def test_a_changed_seal_does_not_open() -> None:
    sealed = bytearray(seal(SECRET))
    sealed[20] ^= 1
    with pytest.raises(InvalidToken):
        unseal(bytes(sealed))


def test_while_a_key_is_replaced_old_and_new_seals_open(keys: Settings) -> None:
    before = seal(SECRET)
    keys.ROMULUS_KEYS = [NEW, OLD]
    after = seal(SECRET)
    assert (unseal(before), unseal(after)) == (SECRET, SECRET)
    keys.ROMULUS_KEYS = [NEW]  # the first key seals
    assert unseal(after) == SECRET
    with pytest.raises(InvalidToken):
        unseal(before)


# --- digests ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ({"a": {"x": 1, "y": [{"p": 1, "q": 2}]}}, {"a": {"y": [{"q": 2, "p": 1}], "x": 1}}),
        ({"é": 1, "a": 2}, {"a": 2, "é": 1}),
        ({"a": 1.0}, {"a": 1}),  # one number in JSON
    ],
)
def test_equal_parameters_have_one_digest_whatever_their_order(one: Any, other: Any) -> None:
    assert canonical(one) == canonical(other)
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"amount": 125}, {"amount": 130}),
        ({"amount": 125}, {"amount": "125"}),
        ({"a": None}, {}),
        ({"a": [1, 2]}, {"a": [2, 1]}),
        ({"a": True}, {"a": 1}),
        ({"a": "\u00e9"}, {"a": "e\u0301"}),  # one letter, and a letter with an accent after it
    ],
)
def test_other_parameters_have_another_digest(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_a_digest_names_its_key_and_depends_on_it(keys: Settings) -> None:
    before = digest({"amount": 125})
    keys.ROMULUS_KEYS = [NEW, OLD]
    after = digest({"amount": 125})
    name_before, mac_before = before.split(":")
    name_after, mac_after = after.split(":")
    assert (name_before, mac_before) != (name_after, mac_after)
    assert name_before != name_after
    assert OLD not in before
    assert len(before) <= 100  # its column


def test_each_purpose_has_a_key_of_its_own() -> None:
    derived = {derive(OLD, purpose) for purpose in (b"seal", b"digest", b"name")}
    assert len(derived) == 3
    assert all(len(key) == 32 for key in derived)


# --- redaction --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "visible", "shown"),
    [
        ({"order": "ORD-1", "card": "4111"}, ["order"], {"order": "ORD-1", "card": REDACTED}),
        ({"order": "ORD-1"}, [], {"order": REDACTED}),
        ({"order": "ORD-1"}, ["card"], {"order": REDACTED}),
        # a path shows the one inside, and hides its neighbours
        (
            {"to": {"name": "Ada", "street": "x"}},
            ["to.name"],
            {"to": {"name": "Ada", "street": REDACTED}},
        ),
        (
            {"a": {"b": {"c": 1, "d": 2}, "c": 3}},
            ["a.b.c"],
            {"a": {"b": {"c": 1, "d": REDACTED}, "c": REDACTED}},
        ),
        # a name inside does not show its namesake outside, nor the other way round
        ({"name": "x", "to": {"name": "y"}}, ["to.name"], {"name": REDACTED, "to": {"name": "y"}}),
        ({"name": "x", "to": {"name": "y"}}, ["name"], {"name": "x", "to": REDACTED}),
        # the whole of what is named is shown
        ({"to": {"name": "Ada", "zip": 1}}, ["to"], {"to": {"name": "Ada", "zip": 1}}),
        # lists are hidden as a whole: what they hold has no path
        ({"lines": [{"order": "ORD-1"}]}, ["lines.order", "order"], {"lines": REDACTED}),
        # names that only begin alike
        ({"order_note": "x"}, ["order"], {"order_note": REDACTED}),
        ({"to": {"name": "x"}}, ["to."], {"to": {"name": REDACTED}}),
        ({"a": None, "b": 0, "c": ""}, ["a"], {"a": None, "b": REDACTED, "c": REDACTED}),
    ],
)
def test_only_what_the_allow_list_names_is_shown(
    parameters: dict[str, Any], visible: list[str], shown: dict[str, Any]
) -> None:
    assert redact(parameters, visible) == shown


def test_redaction_leaves_what_is_sent_as_it_is() -> None:
    parameters = {"to": {"name": "Ada"}}
    redact(parameters, [])
    assert parameters == {"to": {"name": "Ada"}}


def test_the_names_inside_a_hidden_value_are_hidden_too() -> None:
    shown = redact({"recipients": {"ada@private.example": {"vip": True}}}, ["order"])
    assert "ada@private.example" not in str(shown)
