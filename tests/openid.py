"""An OpenID provider: a real HTTP server that knows one person and asks them nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa

CLIENT_ID, CLIENT_SECRET = "romulus", "a secret of the tests"


@dataclass
class OpenIDProvider:
    """What it says of the person who signs in there; `asked` counts what it was asked for."""

    url: str = ""
    claims: dict[str, Any] = field(default_factory=dict)
    issued: dict[str, dict[str, str]] = field(default_factory=dict)  # by code, until it is used
    asked: list[str] = field(default_factory=list)
    key: rsa.RSAPrivateKey = field(
        default_factory=lambda: rsa.generate_private_key(public_exponent=65537, key_size=2048)
    )

    @property
    def settings(self) -> dict[str, Any]:
        """As `SOCIALACCOUNT_PROVIDERS` names it."""
        from romulus_site.accounts.environment import openid_settings

        return openid_settings(
            {
                "ROMULUS_OIDC_SERVER": self.url,
                "ROMULUS_OIDC_CLIENT_ID": CLIENT_ID,
                "ROMULUS_OIDC_CLIENT_SECRET": CLIENT_SECRET,
                "ROMULUS_OIDC_NAME": "Northwind",
            }
        )

    def configuration(self) -> dict[str, Any]:
        return {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "userinfo_endpoint": f"{self.url}/userinfo",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_post"],
        }

    def authorise(self, asked: dict[str, str]) -> str:
        """The address that the browser is sent back to."""
        code = secrets.token_urlsafe(12)
        self.issued[code] = asked
        return f"{asked['redirect_uri']}?{urlencode({'code': code, 'state': asked['state']})}"

    def tokens(self, given: dict[str, str]) -> dict[str, Any] | None:
        """Exchange a code, once, for whoever began with it; None when something does not fit."""
        asked = self.issued.pop(given.get("code", ""), None)
        if asked is None or given.get("client_secret") != CLIENT_SECRET:
            return None
        challenge = hashlib.sha256(given.get("code_verifier", "").encode()).digest()
        fits = base64.urlsafe_b64encode(challenge).rstrip(b"=").decode()
        if asked.get("code_challenge") != fits or asked["redirect_uri"] != given["redirect_uri"]:
            return None
        now = int(time.time())
        identity = {"iss": self.url, "aud": CLIENT_ID, "iat": now, "exp": now + 60} | self.claims
        return {
            "access_token": "known",
            "token_type": "Bearer",
            "id_token": jwt.encode(identity, self.key, algorithm="RS256", headers={"kid": "1"}),
        }


def handler_for(provider: OpenIDProvider) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            provider.asked.append(parts.path)
            match parts.path:
                case "/.well-known/openid-configuration":
                    self.answer(provider.configuration())
                case "/authorize":
                    self.send_response(HTTPStatus.FOUND)
                    there = provider.authorise(dict(parse_qsl(parts.query)))
                    self.send_header("Location", there)
                    self.end_headers()
                case "/userinfo":
                    known = self.headers["Authorization"] == "Bearer known"
                    self.answer(provider.claims if known else None)
                case _:
                    self.answer(None)

        def do_POST(self) -> None:
            provider.asked.append(self.path)
            length = int(self.headers["Content-Length"])
            given = parse_qs(self.rfile.read(length).decode())
            self.answer(provider.tokens({name: values[0] for name, values in given.items()}))

        def answer(self, content: Any) -> None:
            body = json.dumps(content or {"error": "invalid_grant"}).encode()
            self.send_response(HTTPStatus.OK if content else HTTPStatus.BAD_REQUEST)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Not to the terminal."""

    return Handler


@contextmanager
def running_openid_provider() -> Iterator[OpenIDProvider]:
    provider = OpenIDProvider()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_for(provider))
    provider.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
