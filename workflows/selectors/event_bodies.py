"""What was received, for people who may see payloads: as text, JSON set out for reading.

It is never markup: the text goes into the page escaped. A large body is shown in part.
"""

from __future__ import annotations

from workflows.core.errors import DeliveryRefused
from workflows.core.json_text import NotJson, parse
from workflows.core.pretty import pretty_json
from workflows.core.unpacking import unpacked
from workflows.event_pages import Body
from workflows.models import Event

SHOWN = 256 * 1024  # bytes of an unpacked body
HIDDEN = "Its content is hidden: you may see that it is there, not what it says."
PURGED = "It was purged at the end of its retention."


def body_of(event: Event, *, payloads: bool) -> Body:
    """The body of an event that comes with its source, and with its body if it may be shown."""
    size = event_size(event)
    if event.purged_at is not None:
        return Body(event.content_type, 0, event.encoding, note=PURGED)
    if not payloads:
        return Body(event.content_type, size, event.encoding, note=HIDDEN)
    raw = bytes(event.body or b"")
    try:
        data = unpacked(raw, event.encoding, max(event.source.max_bytes, len(raw)))
    except DeliveryRefused as error:
        note = f"It cannot be unpacked: {error}"
        return Body(event.content_type, size, event.encoding, note=note)
    text, note, is_json = as_text(data)
    return Body(event.content_type, size, event.encoding, text, note, is_json=is_json)


def event_size(event: Event) -> int:
    """Of the body as it came: worked out by the database where the body is not read."""
    size: int | None = getattr(event, "size", None)
    return len(event.body or b"") if size is None else size


def as_text(data: bytes) -> tuple[str, str, bool]:
    """The text of a body, what there is to say about it, and whether it is JSON."""
    if len(data) > SHOWN:
        text = data[:SHOWN].decode(errors="replace")
        return text, f"The first {SHOWN:,} of {len(data):,} bytes are shown.", False
    try:
        parse(data)
    except NotJson as problem:
        return data.decode(errors="replace"), f"It is no JSON: {problem}.", False
    return pretty_json(data.decode("utf-8-sig")), "", True
