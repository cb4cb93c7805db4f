"""Rights leave with their object: none is left over for another one."""

from __future__ import annotations

from typing import Any

from django.contrib.contenttypes.models import ContentType
from django.db.models.signals import post_delete
from guardian.models import GroupObjectPermission, UserObjectPermission


def take_along(sender: Any, instance: Any, **_: Any) -> None:
    """Delete the rights on `instance`, in the transaction that deletes it."""
    about = {
        "content_type": ContentType.objects.get_for_model(sender),
        "object_pk": str(instance.pk),
    }
    UserObjectPermission.objects.filter(**about).delete()
    GroupObjectPermission.objects.filter(**about).delete()


def connect() -> None:
    from romulus_site.rights.kinds import KINDS

    for kind in KINDS.values():
        post_delete.connect(take_along, sender=kind.model, dispatch_uid=f"rights.{kind.slug}")
