"""What every answer of the console carries, and what becomes of a session that has ended."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING
from urllib.parse import urlencode, urlsplit, urlunsplit

from django.conf import settings
from django.contrib.auth import REDIRECT_FIELD_NAME
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import resolve_url
from django.urls import Resolver404, resolve
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject
from django.utils.http import url_has_allowed_host_and_scheme

if TYPE_CHECKING:
    from reconciliation.models import Profile

HOOKS = "/hooks/"
GetResponse = Callable[[HttpRequest], HttpResponseBase]

# Everything from this very site and nothing inline: text from a provider that slipped into a page
# as markup would still not run. The admin works under it.
CONTENT_POLICY = (
    "default-src 'self'; img-src 'self' data:; object-src 'none'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)


def content_policy(get_response: GetResponse) -> GetResponse:
    """Tell browsers what a page may load, and caches that pages are personal.

    The same address answers a page or a fragment of it, so answers vary by `HX-Request`.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", CONTENT_POLICY)
        response.headers.setdefault("Cache-Control", "private, no-cache")
        patch_vary_headers(response, ["HX-Request", "HX-Target"])
        return response

    return middleware


def hooks_apart(get_response: GetResponse) -> GetResponse:
    """Answer deliveries of events before sessions, people, forms and their messages come into it.

    They have none of these, and looking for them took an eighth of the time of each. What counts
    for every answer stays: headers and policy are set by those before this one; the host is checked
    and the length of the answer told here, as `CommonMiddleware` would.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(HOOKS):
            return get_response(request)
        request.get_host()  # raises DisallowedHost
        try:
            found = resolve(request.path_info)
        except Resolver404:
            return get_response(request)
        request.resolver_match = found
        response: HttpResponseBase = found.func(request, *found.args, **found.kwargs)
        response.headers.setdefault("X-Frame-Options", settings.X_FRAME_OPTIONS)
        if isinstance(response, HttpResponse):
            response.headers.setdefault("Content-Length", str(len(response.content)))
        return response

    return middleware


def own_profile(get_response: GetResponse) -> GetResponse:
    """Give each request the preferences of its person as `profile`, read once something asks.

    Django's own current time zone stays UTC: forms say in which zone they read a time, and what
    prints a time with the words "UTC" beside it prints UTC. Times in the person's own zone are
    printed by the tags of `romulus_site.templatetags`, each with its zone.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        request.profile = SimpleLazyObject(lambda: _profile_of(request))  # type: ignore[attr-defined]
        return get_response(request)

    return middleware


def _profile_of(request: HttpRequest) -> Profile:
    from reconciliation.services.profiles import profile_of

    return profile_of(request.user)


def session_ended(get_response: GetResponse) -> GetResponse:
    """Send whoever asks or presses something without a session to the login page, and back.

    To htmx with 401: a redirect would be followed by the browser unseen, and htmx would paste the
    login page into a panel. A form that was sent without scripts is not asked for again after
    signing in, since nobody can open the address that it went to: like htmx's requests it leads
    back to the page that it was on, and the login page says that it was not recorded.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        response = get_response(request)
        htmx = request.headers.get("HX-Request") == "true"
        if not _leads_to_login(response) or not (htmx or request.method == "POST"):
            return response
        query = urlencode({"next": page_of(request), "ended": "1"})
        login = f"{resolve_url(settings.LOGIN_URL)}?{query}"
        if not htmx:
            response.headers["Location"] = login
            return response
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": login})

    return middleware


def _leads_to_login(response: HttpResponseBase) -> bool:
    """Whether it asks to sign in first; after signing out one comes there, too."""
    target = urlsplit(response.headers.get("Location", ""))
    asked = response.status_code == HTTPStatus.FOUND and REDIRECT_FIELD_NAME in target.query
    return asked and target.path == resolve_url(settings.LOGIN_URL)


def page_of(request: HttpRequest) -> str:
    """Return the path of the page that a request was made from; never another site's."""
    page = urlsplit(request.headers.get("HX-Current-URL") or request.headers.get("Referer", ""))
    path = urlunsplit(("", "", page.path, page.query, ""))
    own = page.netloc == request.get_host() and path.startswith("/")
    if own and url_has_allowed_host_and_scheme(path, allowed_hosts=None):
        return path
    return resolve_url(settings.LOGIN_REDIRECT_URL)
