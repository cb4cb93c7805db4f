"""What every answer carries, and a session that ended inside an htmx request (case A24)."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.test import RequestFactory

from romulus_site.middleware import content_policy, page_of, session_ended

LOGIN = "/login/"


def to_login(_request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(f"{LOGIN}?next=/review/")


def htmx(current: str = "http://testserver/runs/?state=held", **headers: str) -> HttpRequest:
    return RequestFactory().get(
        "/needs-you/", headers={"HX-Request": "true", "HX-Current-URL": current, **headers}
    )


def test_an_htmx_request_without_a_session_is_sent_to_the_whole_login_page() -> None:
    response = session_ended(to_login)(htmx())
    target = urlsplit(response.headers["HX-Redirect"])
    assert response.status_code == 401
    assert "Location" not in response.headers
    assert target.path == LOGIN
    assert parse_qs(target.query) == {"next": ["/runs/?state=held"], "ended": ["1"]}


def test_a_page_without_a_session_is_redirected_as_usual() -> None:
    response = session_ended(to_login)(RequestFactory().get("/review/"))
    assert response.status_code == 302


def test_other_redirects_of_htmx_requests_stay_as_they_are() -> None:
    response = session_ended(lambda _: HttpResponseRedirect("/review/"))(htmx())
    assert response.status_code == 302


@pytest.mark.parametrize(
    "current",
    [
        "",
        "https://elsewhere.example/review/",
        "http://testserver//elsewhere.example/",
        "javascript:alert(1)",
        "http://testserver.elsewhere.example/",
        "/review/",
    ],
)
def test_nobody_is_led_to_another_site_after_signing_in(current: str) -> None:
    assert page_of(htmx(current)) == "/review/"


def test_every_answer_has_the_policy_and_is_personal() -> None:
    response = content_policy(lambda _: HttpResponse())(RequestFactory().get("/"))
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert response.headers["Cache-Control"] == "private, no-cache"
    assert "HX-Request" in response.headers["Vary"]
