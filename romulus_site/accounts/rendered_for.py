"""A form is taken from nobody but the person whom it was shown to, and no page is given a part
that was made for somebody else.

Two tabs of a browser share one session. Whoever signs in as somebody else in one of them must not
decide under that name with a form that the other tab still shows, nor with one that htmx puts into
a page whose frame names who was there before.
"""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import urlsplit

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.template import Context, Library, Node
from django.template.base import Parser, Token
from django.template.defaulttags import CsrfTokenNode
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

GetResponse = Callable[[HttpRequest], HttpResponseBase]

FIELD = "rendered_for"
# What htmx sends along with each request of a page: whom that was rendered for (base.html).
HEADER = "Rendered-For"
# Never shown again, whoever has typed it.
UNTOLD = (
    *("csrfmiddlewaretoken", FIELD, "token", "version", "basis", "next", "code", "credential"),
    *("do", "holds", "hold"),  # of a plan for many: nobody has typed them
)
SECRET = ("password", "secret", "credential", "value")

register = Library()


class FormTokenNode(Node):
    """Django's own token, and whom the form is rendered for."""

    child_nodelists = ()

    def render(self, context: Context) -> SafeString:
        user = context.get("user")
        whose = user.pk if user is not None and user.is_authenticated else ""
        return format_html(
            '{}<input type="hidden" name="{}" value="{}">',
            CsrfTokenNode().render(context),
            FIELD,
            whose,
        )


@register.tag
def csrf_token(parser: Parser, token: Token) -> FormTokenNode:  # noqa: ARG001 (Django's names)
    """In the place of Django's tag, so that no form can be without it, the admin's included."""
    return FormTokenNode()


def only_whom_it_was_rendered_for(get_response: GetResponse) -> GetResponse:
    """Refuse, with 409, a form that was rendered for another account than the one signed in, and
    a part of a page that was.

    Before the view and before Django looks at the token: that is another one after signing in
    again, and its refusal would lose what was typed. A request without field and header is none of
    ours; Django's token and the rights of whoever sends it are all that counts there.
    """

    def middleware(request: HttpRequest) -> HttpResponseBase:
        if settings.SESSION_COOKIE_NAME not in request.COOKIES:
            return get_response(request)
        whose = rendered_for(request)
        signing_out = request.path == reverse("logout")
        if not whose or signing_out or whose == {str(request.user.pk or "")}:
            return get_response(request)
        if not request.user.is_authenticated:  # it ended: the view leads to the login page
            return get_response(request)
        return refused(request)

    return middleware


def rendered_for(request: HttpRequest) -> set[str]:
    """Whom the page and the form of a request were rendered for; empty where neither says so."""
    form = request.POST.get(FIELD, "") if request.method == "POST" else ""
    return {request.headers.get(HEADER, ""), form} - {""}


def refused(request: HttpRequest) -> HttpResponseBase:
    """Nothing was recorded, and what was typed is not lost.

    To htmx a sentence above the page, whose form stays as it is. Without, a page that shows what
    was typed, but only where the form came from this very site.
    """
    if request.headers.get("HX-Request") == "true":
        answer = render(request, "shared/_another_account.html", status=HTTPStatus.CONFLICT)
        answer.headers["HX-Retarget"] = "#alerts"
        answer.headers["HX-Reswap"] = "innerHTML"
        return answer
    context = {"typed": typed_in(request) if from_here(request) else []}
    return render(request, "another_account.html", context, status=HTTPStatus.CONFLICT)


def from_here(request: HttpRequest) -> bool:
    origin = request.headers.get("Origin", "")
    return bool(origin) and urlsplit(origin).netloc == request.get_host()


def typed_in(request: HttpRequest) -> list[tuple[str, str]]:
    """Names and values of the form's fields that people fill in."""
    return [
        (name.replace("_", " ").capitalize(), value)
        for name, values in request.POST.lists()
        if name not in UNTOLD and not any(word in name for word in SECRET)
        for value in values
        if value.strip()
    ]
