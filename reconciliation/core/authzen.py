"""The OpenID AuthZEN Authorization API 1.0: what is asked, and what an answer says. Pure.

A decision point answers an evaluation with `{"decision": true|false, "context": {…}}`, and several
at once with `{"evaluations": [ … ]}`. Anything that is not plainly a yes is a no: no answer,
another form, a status that is not 200, an obligation, which nobody here would fulfil.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from workflows.core.boundary.requests import Request
from workflows.core.boundary.subjects import Subject, SubjectType
from workflows.core.words import storable, without_credentials

EVALUATION = "/access/v1/evaluation"
EVALUATIONS = "/access/v1/evaluations"
OK = 200
SAID = 200  # characters of a reason
LONGEST_ID = 200
OBLIGATIONS = frozenset({"obligations", "obligation"})


UNREADABLE = "its answer cannot be read"
OBLIGED = "it attaches obligations that nobody here fulfils"


@dataclass(frozen=True, slots=True)
class PointSaid:
    """What the decision point said: `reason` for people, never a payload; `answered` when it is its
    own answer, and not the want of one."""

    allowed: bool
    reason: str
    decision_id: str = ""
    answered: bool = False


def questions(request: Request) -> tuple[str, dict[str, Any]]:
    """Where a request is asked about, and with which body: the subject alone, or both the agent and
    the person for whom it acts. Both must be allowed then."""
    common = {
        "action": {"name": request.action},
        "resource": {
            "type": request.action.partition(".")[0],
            "id": request.target,
            "properties": {
                "tenant": request.tenant,
                "parameters": request.parameters,
                "amount": None if request.amount is None else str(request.amount),
                "currency": request.currency,
            },
        },
    }
    subject = subject_of(request.subject, request)
    if request.on_behalf_of is None:
        return EVALUATION, {"subject": subject, **common}
    both = [subject, subject_of(request.on_behalf_of, request)]
    return EVALUATIONS, {
        **common,
        "evaluations": [{"subject": each} for each in both],
        "options": {"evaluations_semantic": "deny_on_first_deny"},
    }


def subject_of(subject: Subject, request: Request) -> dict[str, Any]:
    """A person is a `user` to AuthZEN; who acts for whom is said in the properties."""
    kind = "user" if subject.type is SubjectType.PERSON else str(subject.type)
    said: dict[str, Any] = {"type": kind, "id": subject.id}
    if subject == request.subject and request.on_behalf_of is not None:
        said["properties"] = {"on_behalf_of": request.on_behalf_of.id}
    return said


def said_of(status: int | None, document: Any, path: str, number: int, asked: str) -> PointSaid:
    """What an answer says.

    Args:
        status: None when no whole answer came.
        number: how many questions were asked.
        asked: the ID of our request, which stands for a decision that has none of its own.
    """
    if status is None:
        return PointSaid(False, "it could not be asked in time", asked)
    if status != OK:
        return PointSaid(False, f"it answered {status}", asked)
    answers = [document] if path == EVALUATION else evaluations_in(document)
    if not answers or len(answers) > number:
        return PointSaid(False, UNREADABLE, asked)
    if path == EVALUATIONS and obliges(document):
        return PointSaid(False, OBLIGED, asked)
    for answer in answers:
        found = one_of(answer, asked)
        if not found.allowed:
            return found
    if len(answers) < number:
        return PointSaid(False, "it has not answered everything", asked)
    return one_of(answers[0], asked)


def evaluations_in(document: Any) -> list[Any]:
    found = document.get("evaluations") if isinstance(document, dict) else None
    return found if isinstance(found, list) else []


def one_of(answer: Any, asked: str) -> PointSaid:
    if not isinstance(answer, dict) or not isinstance(answer.get("decision"), bool):
        return PointSaid(False, UNREADABLE, asked)
    context = {} if answer.get("context") is None else answer["context"]
    if not isinstance(context, dict):
        return PointSaid(False, UNREADABLE, asked)
    decision = decision_id(context) or asked
    if answer["decision"] is False:
        return PointSaid(False, f"it says no{reason_in(context)}", decision, answered=True)
    if obliges(answer) or obliges(context):
        return PointSaid(False, OBLIGED, decision, answered=True)
    return PointSaid(True, "it says yes", decision, answered=True)


def obliges(part: dict[str, Any]) -> bool:
    """Whether it attaches what has to be done first, under whichever spelling."""
    return any(value for name, value in part.items() if name.casefold() in OBLIGATIONS)


def decision_id(context: dict[str, Any]) -> str:
    found = context.get("id", context.get("decision_id"))
    return storable(found, LONGEST_ID) if isinstance(found, str) else ""


def reason_in(context: dict[str, Any]) -> str:
    """The reason that is for a user, where one is given: text, or texts by language."""
    found = context.get("reason_user")
    if isinstance(found, dict):
        found = found.get("en", next(iter(found.values()), None))
    if not isinstance(found, str) or not found:
        return ""
    return f": {without_credentials(storable(found, SAID))}"
