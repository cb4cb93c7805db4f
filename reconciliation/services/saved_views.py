"""Views of the queue that are kept under a name: one's own, or for the owners of a queue."""

from __future__ import annotations

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction

from reconciliation.core.errors import InvalidRequest
from reconciliation.models import ReviewQueue, SavedView
from reconciliation.services.audit import actor_of, add_entry
from reconciliation.services.notes import name_of
from workflows.core.words import is_storable, read_length

MOST = 20  # of one person, and of one queue
MAX_NAME = 60
MAX_QUERY = 1000


def save_view(user: User, name: str, query: str, queue: ReviewQueue | None = None) -> SavedView:
    """Keep a view; one's own of that name is replaced, so that saving twice keeps one.

    What somebody else has kept for a queue is not: its owners would find another list under a name
    that they know.

    Args:
        query: as in the address of the queue, without its `?`.
        queue: for whose owners; None: for `user` alone.

    Raises:
        InvalidRequest: the name does not fit (`name`), or there are as many as may be, or somebody
            else has kept another view under it.
        PermissionDenied: only owners of a queue keep views for its owners.
    """
    name = " ".join(name.split())
    if not read_length(name) or not is_storable(name, MAX_NAME):
        raise InvalidRequest("name", f"Give it a name of {MAX_NAME} characters at most.")
    if len(query) > MAX_QUERY:
        raise InvalidRequest("", "This address is too long to be kept.")
    if queue is not None and not queue.owners.filter(pk=user.pk).exists():
        raise PermissionDenied("Only the owners of a queue keep views for its owners.")
    person = None if queue else user
    mine = SavedView.objects.filter(person=person, queue=queue)
    with transaction.atomic():
        if not mine.filter(name=name).exists() and mine.count() >= MOST:
            raise InvalidRequest("name", f"There are {MOST} already. Remove one first.")
        given = {"query": query, "made_by": name_of(user)}
        view, _ = SavedView.objects.select_for_update().get_or_create(
            name=name, person=person, queue=queue, defaults=given
        )
        if view.query != query:
            ensure_own(view, user)
            view.query = query
            view.save(update_fields=["query"])
        if queue is not None:
            add_entry(actor_of(user), "saved a view", f"queue:{queue.slug}", {"view": name})
    return view


def ensure_own(view: SavedView, user: User) -> None:
    """Raises `InvalidRequest` for a view of a queue that somebody else has kept."""
    if view.queue is not None and view.made_by != name_of(user):
        raise InvalidRequest(
            "name",
            f"{view.made_by} has kept another view under this name for {view.queue.name}. Give "
            "yours another name, or remove that one first, under Saved views.",
        )


def remove_view(view: SavedView, user: User) -> None:
    """Remove one's own view, or one of a queue that one owns.

    Raises:
        PermissionDenied: it is neither.
    """
    queue = view.queue
    mine = view.person_id == user.pk
    if not mine and not (queue and queue.owners.filter(pk=user.pk).exists()):
        raise PermissionDenied("Only the owners of a queue remove its views.")
    with transaction.atomic():
        SavedView.objects.filter(pk=view.pk).delete()
        if queue is not None:
            add_entry(actor_of(user), "removed a view", f"queue:{queue.slug}", {"view": view.name})
