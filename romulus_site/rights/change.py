"""Giving and taking rights on one object: all of somebody's at once, or none, on record."""

from __future__ import annotations

from collections.abc import Set
from typing import Any

from django.contrib.auth.models import Group, User
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from guardian.models import GroupObjectPermission, UserObjectPermission
from guardian.shortcuts import assign_perm, remove_perm

from romulus_site.rights.kinds import kind_of, name_of
from romulus_site.rights.rules import refusal
from workflows.rights import holds
from workflows.services import audit
from workflows.services.audit import actor_of

Holder = User | Group


class RightsRefused(Exception):
    """Nothing was changed; says why, to the person who asked."""


class RightsChangedMeanwhile(RightsRefused):
    """Somebody else has changed the same rights since they were shown."""


def direct_rights(subject: Any, holder: Holder) -> set[str]:
    """The codenames that `holder` was given on `subject`, not those that come by a group."""
    table = UserObjectPermission if isinstance(holder, User) else GroupObjectPermission
    whose = "user" if isinstance(holder, User) else "group"
    found = table.objects.filter(
        **{whose: holder},
        content_type=ContentType.objects.get_for_model(subject),
        object_pk=str(subject.pk),
    )
    return set(found.values_list("permission__codename", flat=True)) & set(
        kind_of(subject).codenames
    )


def holder_name(holder: Holder) -> str:
    """What the record calls a person or a group."""
    return actor_of(holder) if isinstance(holder, User) else f"group:{holder.pk} {holder.name}"


@transaction.atomic
def set_rights(
    subject: Any, holder: Holder, wanted: Set[str], *, seen: Set[str], by: User
) -> set[str]:
    """Let `holder` have exactly the rights `wanted` on `subject`; what groups give is untouched.

    Args:
        wanted: codenames; those that the kind of object does not know are refused.
        seen: the rights as they were when `by` was asked.

    Returns: the codenames that were given or taken.

    Raises:
        RightsRefused: `by` may not change these; see `rules.refusal`.
        RightsChangedMeanwhile: they are no longer what was seen.
    """
    kind = kind_of(subject)
    # One at a time, so that the record's before and after are true.
    type(subject).objects.select_for_update(no_key=True).get(pk=subject.pk)
    if wanted - set(kind.codenames):
        raise RightsRefused("There is no such right on this object.")
    present = direct_rights(subject, holder)
    if present != seen:
        raise RightsChangedMeanwhile(
            "Somebody else has changed these rights since this page was opened. Nothing was "
            "changed; look at them as they are now."
        )
    changed = set(wanted) ^ present
    if why := refused(subject, holder, changed, by):
        raise RightsRefused(why)
    for codename in changed:
        change = assign_perm if codename in wanted else remove_perm
        change(kind.full(codename), holder, subject)
    if changed:
        detail = {"of": holder_name(holder), "before": sorted(present), "after": sorted(wanted)}
        audit.record(actor_of(by), "set rights", name_of(subject), **detail)
    return changed


def refused(subject: Any, holder: Holder, changed: Set[str], by: User) -> str:
    """Why `by` may not, by what they hold now: what the request has read may be old."""
    kind = kind_of(subject)
    now = User.objects.get(pk=by.pk)
    held = {each for each in kind.codenames if holds(now, kind.full(each), subject)}
    if kind.configure.rpartition(".")[2] not in held:
        return "You may not set this object up, so its rights are not yours to change."
    oneself = (
        holder == now if isinstance(holder, User) else now.groups.filter(pk=holder.pk).exists()
    )
    return refusal(administrator=now.is_superuser, held=held, changed=changed, oneself=oneself)
