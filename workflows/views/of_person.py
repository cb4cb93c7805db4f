"""Addresses for programs that act for a person: let in with a token of theirs, by their rights."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Concatenate, ParamSpec

from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from workflows.core.errors import Conflict, NotEntitled, UsageError
from workflows.core.json_text import NotJson
from workflows.core.words import is_storable
from workflows.services.access_tokens import person_of_token
from workflows.views.bearing import NotTaken, bearer_of, refused

LONGEST_WORD = 300

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def of_person(view: Callable[Concatenate[HttpRequest, User, P], HttpResponse]) -> View[P]:
    """Let in whoever shows a token of a person; the view gets that person. What they may not see
    is answered as what is not there."""

    @csrf_exempt
    @wraps(view)
    def let_in(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        user = person_of_token(bearer_of(request))
        if user is None:
            return refused("a valid token of a person is needed", HTTPStatus.UNAUTHORIZED)
        try:
            return view(request, user, *args, **kwargs)
        except Http404:
            return refused("there is nothing of that ID", HTTPStatus.NOT_FOUND)
        except NotTaken as error:
            return refused(str(error), error.status)
        except NotJson as error:
            return refused(str(error), HTTPStatus.BAD_REQUEST)
        except NotEntitled as error:
            return refused(str(error), HTTPStatus.FORBIDDEN)
        except Conflict as error:
            return refused(str(error), HTTPStatus.CONFLICT)
        except UsageError as error:
            return refused(str(error), HTTPStatus.UNPROCESSABLE_ENTITY)

    return let_in


def word_of(request: HttpRequest, name: str) -> str:
    """What the address says of `name`.

    Raises:
        UsageError: no column could hold it.
    """
    text = request.GET[name]
    if not is_storable(text, LONGEST_WORD):
        raise UsageError(f"{name}: plain text of {LONGEST_WORD} characters at most")
    return text
