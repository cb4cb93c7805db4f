"""Before and after of what somebody sets up, for the audit record."""

from __future__ import annotations

from collections.abc import Iterable, Set
from typing import Any

from django.db.models import Model

from workflows.core.changes import Changes, changes_between


def changes_of(
    instance: Model, fields: Iterable[str], *, sealed: Set[str] = frozenset()
) -> Changes:
    """What saving `instance` changes of `fields`, against its row as it stands now.

    Called in the transaction that saves, before it does: the row is locked, so that what the
    record says was before is what was replaced. A row that is new had nothing.

    Args:
        fields: names; those that are no column, such as what a form alone has, are told by name.
        sealed: fields whose values are not told.
    """
    columns = {field.name: field for field in instance._meta.concrete_fields}
    named = [name for name in fields if name in columns]
    kind: Any = type(instance)
    row = (
        kind._base_manager.select_for_update(of=("self",), no_key=True)
        .filter(pk=instance.pk)
        .first()
    )
    before = {name: value_of(row, name) for name in named} if row is not None else {}
    after = {name: value_of(instance, name) for name in named}
    changes = changes_between(before, after, sealed=sealed)
    others = {name: [True] for name in fields if name not in columns}
    return changes | changes_between({}, others, sealed=others.keys())


def value_of(instance: Model, name: str) -> Any:
    """A field's value; of a relation what it is called."""
    value = getattr(instance, name)
    return str(value) if isinstance(value, Model) else value
