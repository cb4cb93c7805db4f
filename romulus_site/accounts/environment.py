"""What the environment says of mail and of OpenID Connect, as Django and allauth want it.

Settings import this, so it imports nothing of Django.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

# The ID of the one OpenID provider in addresses: its callback is /account/oidc/sso/login/callback/.
OPENID_ID = "sso"
PORTS = {"smtp": 25, "smtp+tls": 587, "smtps": 465}
SECONDS = 10  # until a mail server that does not answer is given up: somebody waits for the page


class InvalidEnvironment(ValueError):
    """A variable that cannot work: which, and how it is written instead."""


@dataclass(frozen=True, slots=True)
class Mail:
    """How mail is sent; as Django's settings EMAIL_… call it."""

    backend: str
    host: str = ""
    port: int = 25
    user: str = ""
    password: str = ""
    use_tls: bool = False
    use_ssl: bool = False
    timeout: int = SECONDS


def mail_settings(url: str) -> Mail:
    """Read EMAIL_URL; an empty one writes what would be sent to the console's log.

    Raises:
        InvalidEnvironment: it names no mail server.
    """
    if not url:
        return Mail(backend="django.core.mail.backends.console.EmailBackend")
    parts = urlsplit(url)
    if parts.scheme not in PORTS or not parts.hostname:
        raise InvalidEnvironment(
            "EMAIL_URL names no mail server. Write it as smtp://host:25, "
            "smtp+tls://user:password@host:587 (STARTTLS) or smtps://user:password@host:465; "
            "special characters of user and password as %40 and the like."
        )
    return Mail(
        backend="django.core.mail.backends.smtp.EmailBackend",
        host=parts.hostname,
        port=parts.port or PORTS[parts.scheme],
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        use_tls=parts.scheme == "smtp+tls",
        use_ssl=parts.scheme == "smtps",
    )


def openid_settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """Read ROMULUS_OIDC_…; without a server, nobody signs in by OpenID Connect.

    Raises:
        InvalidEnvironment: a server is named and what it knows us by is not.
    """
    server = environment.get("ROMULUS_OIDC_SERVER", "")
    if not server:
        return {}
    client = environment.get("ROMULUS_OIDC_CLIENT_ID", "")
    secret = environment.get("ROMULUS_OIDC_CLIENT_SECRET", "")
    if not client or not secret:
        raise InvalidEnvironment(
            "ROMULUS_OIDC_SERVER is set, so ROMULUS_OIDC_CLIENT_ID and ROMULUS_OIDC_CLIENT_SECRET "
            "must be: what its administrator has registered for this console."
        )
    app = {
        "provider_id": OPENID_ID,
        "name": environment.get("ROMULUS_OIDC_NAME", "") or "single sign-on",
        "client_id": client,
        "secret": secret,
        "settings": {"server_url": server, "oauth_pkce_enabled": True},
    }
    return {"openid_connect": {"APPS": [app]}}
