"""What the environment says of mail and of single sign-on."""

from __future__ import annotations

import pytest

from romulus_site.accounts.environment import InvalidEnvironment, mail_settings, openid_settings

SERVER = {"ROMULUS_OIDC_SERVER": "https://id.example.org"}


@pytest.mark.parametrize(
    ("url", "host", "port", "tls", "ssl"),
    [
        ("smtp://mail.example.org", "mail.example.org", 25, False, False),
        ("smtp+tls://mail.example.org", "mail.example.org", 587, True, False),
        ("smtps://mail.example.org:4465", "mail.example.org", 4465, False, True),
    ],
)
def test_a_mail_server_is_read(url: str, host: str, port: int, tls: bool, ssl: bool) -> None:
    mail = mail_settings(url)
    assert mail.backend.endswith("smtp.EmailBackend")
    assert (mail.host, mail.port, mail.use_tls, mail.use_ssl) == (host, port, tls, ssl)
    assert mail.timeout > 0


def test_user_and_password_may_hold_anything() -> None:
    mail = mail_settings("smtps://a%40b:p%2Fw%3A@mail.example.org")
    assert (mail.user, mail.password) == ("a@b", "p/w:")


def test_without_a_server_mail_is_written_to_the_log() -> None:
    assert mail_settings("").backend.endswith("console.EmailBackend")


@pytest.mark.parametrize("url", ["mail.example.org", "http://mail.example.org", "smtp://"])
def test_what_names_no_mail_server_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(InvalidEnvironment, match="smtp") as refused:
        mail_settings(url)
    assert "example.org" not in str(refused.value)


def test_without_a_server_there_is_no_single_sign_on() -> None:
    assert openid_settings({}) == {}


def test_a_server_needs_what_it_knows_us_by() -> None:
    with pytest.raises(InvalidEnvironment, match="ROMULUS_OIDC_CLIENT_ID"):
        openid_settings(SERVER)
    known = SERVER | {"ROMULUS_OIDC_CLIENT_ID": "romulus", "ROMULUS_OIDC_CLIENT_SECRET": "s"}
    (app,) = openid_settings(known)["openid_connect"]["APPS"]
    assert app["settings"] == {
        "server_url": SERVER["ROMULUS_OIDC_SERVER"],
        "oauth_pkce_enabled": True,
    }
    assert app["name"] == "single sign-on"
