"""The filters of the review queue: what is set, and the options of each.

Options that lie in the code are links on the page. Those that lie in the database are asked for
when somebody opens a filter, so that the page itself need not read them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db.models import QuerySet, Value
from django.urls import reverse

from reconciliation import access
from reconciliation.core.facts import HoldReason
from reconciliation.core.queue_views import ME, NOBODY, Looked
from reconciliation.core.reason_words import reason_words
from reconciliation.models import Hold
from reconciliation.queue_pages import Chip, Choices
from reconciliation.selectors.words import RUN_HOLDS, name_of
from workflows.access import visible_tenants
from workflows.pages import Filter, Link
from workflows.selectors.paging import address

LISTED = 100  # options of one filter; whoever has more narrows the list down otherwise

TITLES = {
    "queue": "Queue",
    "provider": "Provider",
    "tenant": "Tenant",
    "reason": "Reason",
    "assignee": "Assignee",
    "age": "Held for",
    "amount": "Amount",
}
AGES = {
    "1h": "1 h or longer",
    "4h": "4 h or longer",
    "1d": "1 day or longer",
    "3d": "3 days or longer",
    "7d": "7 days or longer",
}
AMOUNTS = ("100", "1000", "10000")


def all_reasons() -> list[str]:
    return sorted({*map(str, HoldReason), *map(str, RUN_HOLDS)}, key=reason_words)


def amount_text(amount: str) -> str:
    return f"{int(amount):,} or more" if amount.isdecimal() else f"{amount} or more"


def chips_of(looked: Looked, names: Mapping[str, str]) -> tuple[Chip, ...]:
    """Each filter with what it is set to; `names`: how people call what is set, by filter."""
    return tuple(chip(name, looked, names.get(name, "")) for name in TITLES)


def chip(name: str, looked: Looked, value: str) -> Chip:
    here = reverse("review")
    static = STATIC.get(name)
    return Chip(
        name=name,
        text=TITLES[name],
        value=value,
        clear_url=address(here, looked.but(**{name: ""}).query()),
        choices_url=""
        if static
        else address(reverse("review_choices", args=[name]), looked.query()),
        options=tuple(links(name, static(), looked)) if static else (),
    )


def links(name: str, options: Iterable[tuple[str, str]], looked: Looked) -> Iterable[Filter]:
    here, set_to = reverse("review"), getattr(looked, name)
    for value, text in options:
        url = address(here, looked.but(**{name: value}).query())
        yield Filter(text, url, value == set_to)


STATIC: dict[str, Callable[[], list[tuple[str, str]]]] = {
    "reason": lambda: [(reason, reason_words(reason)) for reason in all_reasons()],
    "age": lambda: list(AGES.items()),
    "amount": lambda: [(amount, amount_text(amount)) for amount in AMOUNTS],
}


# --- what lies in the database ----------------------------------------------------------------

SLUGGED: dict[str, Callable[[User], QuerySet[Any]]] = {
    "queue": access.visible_queues,
    "provider": access.visible_providers,
    "tenant": visible_tenants,
}


def names_of(looked: Looked, user: User, rows: Sequence[Hold]) -> dict[str, str]:
    """How people call what is set: as the rows of the list have it, else of two queries.

    What the reader may not see, or is not there, keeps the word of the address.
    """
    found = {name: value for name in TITLES if (value := getattr(looked, name))}
    if rows:
        found |= {name: text for name, text in in_row(rows[0]).items() if name in found}
    elif found:
        found |= looked_up(looked, user, found)
    if looked.assignee in (ME, NOBODY):
        found["assignee"] = looked.assignee
    if "reason" in found:
        found["reason"] = reason_words(looked.reason)
    if "age" in found:
        found["age"] = AGES[looked.age]
    if "amount" in found:
        found["amount"] = amount_text(looked.amount)
    return found


def in_row(hold: Hold) -> dict[str, str]:
    """All rows of a filtered list have the same of what it is filtered by."""
    return {
        "queue": hold.queue.name if hold.queue else "",
        "provider": hold.operation.provider.name if hold.operation else "",
        "tenant": hold.tenant.name if hold.tenant else "",
        "assignee": name_of(hold.assignee) if hold.assignee else "",
    }


def looked_up(looked: Looked, user: User, found: Mapping[str, str]) -> dict[str, str]:
    named = [
        rows(user).filter(slug=found[name]).annotate(of=Value(name)).values_list("of", "name")
        for name, rows in SLUGGED.items()
        if name in found
    ]
    names: dict[str, str] = dict(named[0].union(*named[1:])) if named else {}
    if "assignee" in found:
        names["assignee"] = assignee_text(looked.assignee, user)
    return names


def assignee_text(assignee: str, user: User) -> str:
    if assignee in (ME, NOBODY):
        return assignee
    person = assignees(user).filter(pk=int(assignee)).first()
    return name_of(person) if person else "somebody else"


def assignees(user: User) -> QuerySet[User]:
    """Those who have a case that `user` may see: no other account is named here."""
    return get_user_model().objects.filter(pk__in=access.open_holds(user).values("assignee"))


def choices(name: str, looked: Looked, user: User) -> Choices | None:
    """The options of one filter, by name; None: there is no such filter."""
    if name in STATIC:
        options, more = STATIC[name](), False
    elif name in SLUGGED:
        rows = SLUGGED[name](user).order_by("name", "slug").values_list("slug", "name")
        listed = list(rows[: LISTED + 1])
        options, more = listed[:LISTED], len(listed) > LISTED
    elif name == "assignee":
        people = list(assignees(user).order_by("username")[: LISTED + 1])
        others = [(str(each.pk), name_of(each)) for each in people[:LISTED] if each != user]
        options, more = [(ME, "me"), (NOBODY, "nobody"), *others], len(people) > LISTED
    else:
        return None
    return Choices(
        name=name,
        text=TITLES[name],
        options=tuple(links(name, options, looked)),
        back=Link("Review queue", address(reverse("review"), looked.query())),
        more=more,
    )
