"""What administrators do to accounts and groups, on record."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from allauth.mfa.models import Authenticator
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.db.models import Model

from romulus_site.accounts.sessions import end_sessions
from workflows.core.changes import changes_between
from workflows.services import audit
from workflows.services.access_tokens import end_own_tokens
from workflows.services.audit import actor_of
from workflows.services.changes import changes_of

# Kept apart from the row, by relation; each has an entry of its own.
RELATIONS = frozenset({"groups", "user_permissions", "permissions"})


def subject_of(row: Model) -> str:
    """What the record calls a person or a group."""
    return f"{'user' if isinstance(row, User) else 'group'}:{row.pk}"


@transaction.atomic
def save_account(row: User | Group, *, by: User, changed: Sequence[str]) -> None:
    """Save an account or a group itself; a password is told by name alone.

    What lets somebody in ends with an account that is closed: opened again, it lets in whoever
    signs in then, and nobody who had a session or a token before.
    """
    changes = changes_of(row, set(changed) - RELATIONS)
    row.save()
    if changes:
        audit.record(actor_of(by), "set up", subject_of(row), changes=changes)
    if isinstance(row, User) and "is_active" in changed and not row.is_active:
        end_sessions(row, by=by)
        end_own_tokens(row, by=by)


def relations_of(row: User | Group) -> dict[str, list[str]]:
    """The groups that somebody is in, and what they or a group may do with all of a kind."""
    if isinstance(row, Group):
        return {"permissions": names(row.permissions.all())}
    return {
        "groups": names(row.groups.all()),
        "user_permissions": names(row.user_permissions.all()),
    }


def names(rows: Iterable[Model]) -> list[str]:
    return sorted(str(each) for each in rows)


def note_relations(row: User | Group, before: dict[str, list[str]], *, by: User) -> None:
    """Put on record what `relations_of` tells otherwise than `before`; in the transaction."""
    changes = changes_between(before, relations_of(row))
    if changes:
        audit.record(actor_of(by), "set groups and rights", subject_of(row), changes=changes)


def note_password(user: User, *, by: User) -> None:
    audit.record(actor_of(by), "set password", subject_of(user))
    end_own_tokens(user, by=by)


@transaction.atomic
def remove_factors(user: User, *, by: User) -> int:
    """Remove somebody's second factors, who has lost them; returns how many there were.

    Their password alone lets them in again. Whoever does this has made sure who asks.
    """
    rows = list(Authenticator.objects.select_for_update().filter(user=user))
    for row in rows:
        row.delete()
    if rows:
        kinds = sorted({str(row.type) for row in rows})
        audit.record(actor_of(by), "removed second factors", subject_of(user), kinds=kinds)
    return len(rows)


@transaction.atomic
def delete_group(group: Group, *, by: User) -> None:
    """Delete a group: its members lose what they had by it alone."""
    from guardian.models import GroupObjectPermission

    held = GroupObjectPermission.objects.filter(group=group).count()
    members = sorted(group.user_set.values_list("username", flat=True))
    detail = {"name": group.name, "members": members, "rights_on_objects": held}
    audit.record(actor_of(by), "deleted group", subject_of(group), **detail)
    group.delete()


def leaves_no_administrator(user: User) -> bool:
    """Whether nobody else could set anything up if `user` were no active administrator.

    In a transaction, whose end the next one to ask waits for: of two administrators who close each
    other's account one stays.
    """
    found = User.objects.filter(is_active=True, is_superuser=True, is_staff=True)
    rows = found.select_for_update().order_by("pk").values_list("pk", flat=True)
    return list(rows) == [user.pk]
