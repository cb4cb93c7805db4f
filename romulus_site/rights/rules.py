"""Who may give and take which rights. Pure."""

from __future__ import annotations

from collections.abc import Set

NOT_YOURS = (
    "You may give and take those rights alone that you hold yourself on this object. "
    "Not yours: {rights}. An administrator can."
)
NOT_ONESELF = (
    "Your own rights, and those of a group that you are in, are for somebody else to change."
)


def refusal(*, administrator: bool, held: Set[str], changed: Set[str], oneself: bool) -> str:
    """Why somebody may not change these rights; empty: they may.

    Whoever sets an object up passes on what they can do themselves and no more, so that nobody
    comes by a right in a roundabout way; nor do they change their own, so that what they can do
    is always known by somebody else.

    Args:
        administrator: whether they are a superuser: bound by neither.
        held: the rights that they hold on the object.
        changed: the rights that would be given or taken.
        oneself: whether it is they whose rights would change, or a group that they are in.
    """
    if administrator or not changed:
        return ""
    if oneself:
        return NOT_ONESELF
    missing = changed - held
    return NOT_YOURS.format(rights=", ".join(sorted(missing))) if missing else ""
