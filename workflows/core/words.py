"""Text of others made fit to be kept and shown: bounded, storable, and without credentials; and
names in sentences."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from pydantic import ValidationError

from workflows.core.values import first_problem

HIDDEN = "[hidden]"
LOOKED_AT, SAID = 2000, 500  # characters of an error's text
# What credentials look like inside an error's text: in an address, after a scheme, beside a name.
CREDENTIALS = (
    (re.compile(r"(\w+://)[^\s/@]+@"), rf"\1{HIDDEN}@"),
    (re.compile(r"\b(Bearer|Basic|Token)\s+[\w.~+/=-]+", re.IGNORECASE), rf"\1 {HIDDEN}"),
    (
        re.compile(
            r"\b((?:\w*[-_])?(?:password|passwd|pwd|secret|token|api[-_]?key|authorization))"
            r"(['\"]?\s*[=:]\s*)['\"]?[^\s'\",;&)}]+",
            re.IGNORECASE,
        ),
        rf"\1\2{HIDDEN}",
    ),
)


def storable(text: str, limit: int) -> str:
    """Return `text` as PostgreSQL can keep it, `limit` characters at most."""
    return text.encode(errors="replace").decode().replace("\x00", "\ufffd")[:limit]


def is_storable(text: str, limit: int) -> bool:
    return text == storable(text, limit)


def seen(text: str) -> str:
    """Return `text` with what is not seen in it named: a mark that turns the direction of writing,
    a blank of no width. Whoever approves what a program wrote reads what it says."""
    return "".join(each if is_seen(each) else f"⟨U+{ord(each):04X}⟩" for each in text)


def is_seen(each: str) -> bool:
    kind = unicodedata.category(each)
    return each in "\n\t" or not (kind.startswith("C") or kind in ("Zl", "Zp"))


# Letters and symbols that print nothing; what `is_seen` leaves out is not text at all.
BLANKS = "\u115f\u1160\u2800\u3164\uffa0"


def read_length(text: str) -> int:
    """How many characters of `text` there are to read: a run of blanks counts as one, what is not
    seen as none. A reason that is asked for is not given with blanks of no width."""
    shown = (" " if each in BLANKS else each for each in text if is_seen(each))
    return len(" ".join("".join(shown).split()))


def without_credentials(text: str) -> str:
    """Hide what looks like a credential (promise P9). What looks like none is not recognised."""
    for pattern, shown in CREDENTIALS:
        text = pattern.sub(shown, text)
    return text


def without_values(error: BaseException) -> str:
    """What an error says, without the values that validators and databases add to it (P9)."""
    if isinstance(error, ValidationError):
        return first_problem(error)
    # PostgreSQL names the row's own values in its DETAIL and CONTEXT lines. Cut first: some errors
    # say all that they were given, and nobody reads on.
    return re.split(r"\n(?:DETAIL|CONTEXT|HINT):", str(error)[:LOOKED_AT])[0]


def describe(error: BaseException) -> str:
    """Say in bounded, storable words what was raised."""
    try:
        said = without_values(error)
    except BaseException:  # noqa: BLE001 (an error that cannot say what it is)
        said = ""
    text = storable(f"{type(error).__name__}: {said}", LOOKED_AT)
    return without_credentials(text)[:SAID]


def who(actor: str) -> str:
    """What people call an actor of the record: "user:3 ada" is ada, "command:ada" ada at a
    terminal. Any other stands as it is."""
    kind, _, rest = actor.partition(":")
    match kind:
        case "user" if " " in rest:
            return rest.partition(" ")[2]
        case "command" if rest:
            return f"{rest} at the terminal"
        case _:
            return actor


def listed(names: Sequence[str]) -> str:
    """Names in a sentence: "a", "a and b", "a, b and c"."""
    if len(names) < 2:  # noqa: PLR2004 (one name needs no "and")
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
