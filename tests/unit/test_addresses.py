"""Case A28, the rules: what may be called, and what is refused as it is written."""

from __future__ import annotations

import ipaddress

import pytest

from reconciliation.core.addresses import (
    REFUSED,
    Allowed,
    address_problem,
    allowed_for,
    is_public,
    parse_address,
)
from reconciliation.core.errors import InvalidProvider


@pytest.mark.parametrize(
    "ip",
    [
        "127.0.0.1",
        "127.8.9.10",
        "0.0.0.0",  # noqa: S104 (not bound to)
        "10.0.0.1",
        "172.16.5.4",
        "192.168.1.1",
        "100.64.0.1",  # shared by a carrier's customers
        "169.254.169.254",  # a cloud's metadata
        "192.0.0.192",  # another cloud's metadata
        "192.88.99.1",
        "198.18.0.1",
        "203.0.113.5",  # for documentation
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "3fff::1",  # for documentation
        "fe80::1",
        "fc00::1",
        "fd12:3456::1",
        "fec0::1",
        "ff02::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::127.0.0.1",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "2001:db8::1",
    ],
)
def test_what_is_not_public_is_not_called(ip: str) -> None:
    assert not is_public(ipaddress.ip_address(ip))


@pytest.mark.parametrize(
    "ip", ["8.8.8.8", "54.187.205.235", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8"]
)
def test_what_is_public_may_be_called(ip: str) -> None:
    assert is_public(ipaddress.ip_address(ip))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1",
        "http://127.0.0.1.:80/",
        "https://10.1.2.3/v1",
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:8000",
        "http://[::ffff:127.0.0.1]",
        "http://[::ffff:7f00:1]",
        "http://[fe80::1]",
        "http://[fd00::1]",
    ],
)
def test_a_private_address_is_refused_in_the_same_words(address: str) -> None:
    assert address_problem(address, ()) == REFUSED


@pytest.mark.parametrize(
    "address",
    [
        "http://2130706433",
        "http://0x7f000001",
        "http://0x7f.0.0.1",
        "http://0177.0.0.1",
        "http://127.1",
        "http://127.0.0.01",
        "http://public.example@127.0.0.1",
        "http://127.0.0.1@public.example",
        "http://user:password@api.example.com",
        "http://127.0.0.1#@public.example",
        "http://127.0.0.1?@public.example",
        "http://public.example\\@127.0.0.1",
        "http://127.0.0.1%2f@public.example",
        "http://public.example\t.evil",
        "http://public.example\r\nHost: x",
        "http:// public.example",
        "http://[fe80::1%25eth0]",
        "http://\uff11\uff12\uff17.0.0.1",  # digits that are none of ours
        "http://\u24dbocalhost",
        "http://public.example:99999",
        "http://public.example:0",
        "http://",
        "http:///path",
        "file:///etc/passwd",
        "gopher://public.example",
        "ftp://public.example",
        "javascript:alert(1)",
        "//public.example",
        "public.example",
        "",
    ],
)
def test_what_two_programs_could_read_differently_is_no_address(address: str) -> None:
    assert address_problem(address, ())
    with pytest.raises(InvalidProvider):
        parse_address(address)


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("https://api.example.com", "api.example.com", 443, ""),
        ("https://API.example.com./v1/", "api.example.com", 443, "/v1"),
        ("http://api-1.example.com:8080/a/b", "api-1.example.com", 8080, "/a/b"),
        ("https://[2606:4700::1111]:444", "2606:4700::1111", 444, ""),
        ("https://3com.example", "3com.example", 443, ""),
    ],
)
def test_an_address_is_taken_apart(text: str, host: str, port: int, path: str) -> None:
    address = parse_address(text)
    assert (address.host, address.port, address.path) == (host, port, path)
    assert not address_problem(text, ())


def test_an_exception_counts_for_its_provider_its_network_and_its_port() -> None:
    entries = ["payments=10.1.0.0/16", "*=[::1]:8100", "desk=127.0.0.1:8010"]
    payments, desk = allowed_for("payments", entries), allowed_for("desk", entries)
    assert not address_problem("http://10.1.2.3", payments)
    assert address_problem("http://10.2.0.1", payments) == REFUSED
    assert address_problem("http://10.1.2.3", desk) == REFUSED
    assert not address_problem("http://[::1]:8100", payments)
    assert address_problem("http://[::1]:8101", payments) == REFUSED
    assert not address_problem("http://127.0.0.1:8010", desk)
    assert address_problem("http://127.0.0.1", desk) == REFUSED


@pytest.mark.parametrize("text", ["10.0.0.0/8", "=10.0.0.0/8", "a=localhost", "a=10.0.0.1:99999"])
def test_an_exception_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(InvalidProvider, match="ROMULUS_ALLOWED_ADDRESSES"):
        Allowed.parse(text)
