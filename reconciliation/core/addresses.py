"""Which addresses Romulus may call for a provider: public ones, and what a setting names.

An address that somebody can set is a way into the network that the workers stand in. So it is
refused unless it is plainly public: when it is saved, and again for the very address that is
connected to, since a name may be answered differently the next time. Pure: nobody is asked here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from reconciliation.core.errors import InvalidProvider

IP = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

DEFAULT_PORTS = {"http": 80, "https": 443, "smtp": 587, "smtps": 465}
LAST_PORT = 65_535
# Nothing that two parsers read differently: no user, no escapes, no blanks, no backslash, no query.
ADDRESS = re.compile(
    r"(?P<scheme>[a-z]+)://"
    r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~!$&'()*+,;=:-]*)*)"
)
# A last label that a resolver may take for a number: 2130706433, 0x7f.1, 0177.0.0.1, 127.1.
NUMERIC = re.compile(r"(?:.*\.)?(?:[0-9]+|0[xX][0-9A-Fa-f]*)\.?")
# Networks of IPv6 that carry an IPv4 address within.
MAPPED = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("::/96"))
# Translated and tunnelled ones that lead wherever somebody's gateway says.
TUNNELS = (ipaddress.IPv6Network("64:ff9b:1::/48"), ipaddress.IPv6Network("2001::/32"))
# Set aside by IANA, and taken for public by some versions of Python. A cloud keeps its metadata in
# the first.
SET_ASIDE = (
    ipaddress.IPv4Network("192.0.0.0/24"),
    ipaddress.IPv4Network("192.88.99.0/24"),
    ipaddress.IPv6Network("3fff::/20"),
)

REFUSED = (
    "the address leads, or may lead, into a private network. Where that is meant, name it in "
    "ROMULUS_ALLOWED_ADDRESSES for this provider"
)


@dataclass(frozen=True)
class Address:
    """Where a provider is called, taken apart once and for all."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def ip(self) -> IP | None:
        """The number that the host is; None when it is a name."""
        try:
            return ipaddress.ip_address(self.host)
        except ValueError:
            return None

    @property
    def authority(self) -> str:
        """Host and port as they stand in a request, the port only where it is not the usual."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True)
class Allowed:
    """An exception for one provider, or for all: a network, and a port if one is named."""

    provider: str
    network: Network
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `PROVIDER=NETWORK`, with `:PORT` behind; the provider's slug, or `*` for all.

        Raises:
            InvalidProvider: names the entry.
        """
        provider, _, rest = text.partition("=")
        port: int | None = None
        bracketed = re.fullmatch(r"\[(.+)\](?::([0-9]+))?", rest)
        plain = re.fullmatch(r"([0-9./]+)(?::([0-9]+))?", rest)
        if found := bracketed or plain:
            rest, number = found.groups()
            port = int(number) if number else None
        try:
            network = ipaddress.ip_network(rest)
        except ValueError as error:
            raise InvalidProvider(f"ROMULUS_ALLOWED_ADDRESSES: {text!r}: {error}") from error
        if not provider or (port is not None and port > LAST_PORT):
            raise InvalidProvider(
                f"ROMULUS_ALLOWED_ADDRESSES: {text!r} is not as payments=10.1.0.0/16 or "
                "*=[::1]:8100"
            )
        return cls(provider, network, port)

    def covers(self, ip: IP, port: int) -> bool:
        return ip in self.network and self.port in (None, port)


def allowed_for(provider: str, entries: Iterable[str]) -> tuple[Allowed, ...]:
    """Return the exceptions that count for `provider`, from the words of the setting.

    Raises:
        InvalidProvider: an entry cannot be read; it names it.
    """
    parsed = [Allowed.parse(entry) for entry in entries]
    return tuple(entry for entry in parsed if entry.provider in ("*", provider))


def parse_address(text: str, schemes: Iterable[str] = ("http", "https")) -> Address:
    """Take a provider's address apart.

    Raises:
        InvalidProvider: it is none, or one that two programs could read differently.
    """
    if "@" in urlsplit_netloc(text):
        raise InvalidProvider(
            "an address without user or password: the credential has its own field"
        )
    found = ADDRESS.fullmatch(text)
    known = tuple(schemes)
    if found is None or found["scheme"] not in known:
        raise InvalidProvider(
            f"an address such as {known[-1]}://api.example.com, with nothing but a host, a port "
            "and a path"
        )
    host = found["host"].strip("[]").rstrip(".").lower()
    port = int(found["port"] or DEFAULT_PORTS[found["scheme"]])
    address = Address(found["scheme"], host, port, found["path"].rstrip("/"))
    if not host or not 0 < port <= LAST_PORT:
        raise InvalidProvider("an address with a host, and a port from 1 to 65535")
    if address.ip is None and (NUMERIC.fullmatch(host) or ":" in host):
        raise InvalidProvider("a number as the host in its plain form, such as 203.0.113.7")
    return address


def urlsplit_netloc(text: str) -> str:
    try:
        return urlsplit(text).netloc
    except ValueError:
        return ""


def is_public(ip: IP) -> bool:
    """Whether `ip` is an address of the public network, also the one that it carries within."""
    if isinstance(ip, ipaddress.IPv6Address):
        if any(ip in network for network in TUNNELS):
            return False
        inner = carried(ip)
        if inner is not None:
            return is_public(inner)
        if ip.is_site_local:
            return False
    if any(ip in network for network in SET_ASIDE):
        return False
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def carried(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside a mapped, compatible, translated or 6to4 one."""
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    if ip.sixtofour is not None:
        return ip.sixtofour
    if any(ip in network for network in MAPPED):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def may_be_called(ip: IP, port: int, allowed: Iterable[Allowed]) -> bool:
    return is_public(ip) or any(entry.covers(ip, port) for entry in allowed)


def address_problem(
    text: str, allowed: Iterable[Allowed], schemes: Iterable[str] = ("http", "https")
) -> str:
    """What is wrong with a provider's address as it is written; empty when nothing is.

    A name is not resolved here: whoever saves it asks for that, and each connection again.
    """
    try:
        address = parse_address(text, schemes)
    except InvalidProvider as error:
        return str(error)
    if address.ip is not None and not may_be_called(address.ip, address.port, allowed):
        return REFUSED
    return ""
