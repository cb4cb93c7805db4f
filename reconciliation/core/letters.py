"""What a notification says, and how it is written for each kind of channel. Pure.

It names the case, what is at stake, what is not known and until when, with a link to its page; it
holds no parameters, no evidence and no secret, and nothing in it decides anything. Whatever it says
comes from outside: each writer escapes for its own reader.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from uuid import UUID

MOST_SUBJECT = 150  # characters: what a list of messages shows of it, with room to spare
MOST_LINE = 500
FOOT = "The link asks you to sign in. Nothing is decided by opening it, or by answering this."


@dataclass(frozen=True)
class Item:
    """One case: its title, what is known of it as (name, value), and its page."""

    title: str
    facts: tuple[tuple[str, str], ...] = ()
    url: str = ""


@dataclass(frozen=True)
class Letter:
    """Attributes:
    id: of the message, the same at each try.
    kind: of what it tells; `summary` when it tells of several things.
    more: how many cases there are beside `items`.
    why: why the reader gets it.
    """

    id: UUID
    kind: str
    subject: str
    lede: str
    at: datetime
    items: tuple[Item, ...] = ()
    more: int = 0
    url: str = ""
    why: str = ""


def line(text: str, limit: int = MOST_LINE) -> str:
    """`text` on one line: what breaks lines or moves the cursor is a blank, as is every run of
    blanks; no header and no list entry can be begun by it."""
    plain = "".join(char if char.isprintable() else " " for char in text)
    whole = " ".join(plain.split())
    return whole if len(whole) <= limit else whole[: limit - 1] + "…"


def subject(letter: Letter) -> str:
    return line(letter.subject, MOST_SUBJECT)


def beyond(letter: Letter) -> str:
    return f"And {letter.more} more." if letter.more else ""


# --- e-mail -----------------------------------------------------------------------------------


def as_text(letter: Letter) -> str:
    parts = [line(letter.lede), *map(item_as_text, letter.items), beyond(letter), letter.url]
    parts += [FOOT if letter.url or letter.items else "", line(letter.why)]
    return "\n\n".join(part for part in parts if part) + "\n"


def item_as_text(item: Item) -> str:
    facts = [f"  {name}: {line(value)}" for name, value in item.facts]
    return "\n".join([line(item.title), *facts, *([f"  {item.url}"] if item.url else [])])


def as_html(letter: Letter) -> str:
    """The same for readers that show HTML: without style, image or script of its own."""
    body = "\n".join(html_parts(letter))
    return f"<!doctype html><html lang=en><body>\n{body}\n</body></html>\n"


def html_parts(letter: Letter) -> Iterator[str]:
    yield f"<p>{escape(line(letter.lede))}</p>"
    for item in letter.items:
        facts = "".join(f"<br>{escape(name)}: {escape(line(value))}" for name, value in item.facts)
        yield f"<p>{html_link(item.title, item.url)}{facts}</p>"
    if letter.more:
        yield f"<p>{escape(beyond(letter))}</p>"
    if letter.url:
        yield f"<p>{html_link(letter.url, letter.url)}</p>"
    for text in (FOOT if letter.url or letter.items else "", line(letter.why)):
        if text:
            yield f"<p><small>{escape(text)}</small></p>"


def html_link(text: str, url: str) -> str:
    shown = escape(line(text))
    return f'<a href="{escape(url)}"><b>{shown}</b></a>' if url else f"<b>{shown}</b>"


# --- Slack, and what understands its messages -------------------------------------------------


def as_slack(letter: Letter) -> bytes:
    parts = [f"*{slack(letter.subject)}*", slack(letter.lede), *map(item_as_slack, letter.items)]
    parts += [slack(beyond(letter)), f"<{letter.url}>" if letter.url else "", slack(letter.why)]
    text = "\n".join(part for part in parts if part)
    document = {"text": text, "unfurl_links": False, "unfurl_media": False}
    return json.dumps(document).encode()


def item_as_slack(item: Item) -> str:
    title = f"<{item.url}|{slack(item.title)}>" if item.url else slack(item.title)
    return "\n".join([f"• {title}", *(f"   {name}: {slack(value)}" for name, value in item.facts)])


def slack(text: str) -> str:
    """No mention, no link and no formatting can be begun by `text`: Slack asks for three escapes;
    a bar would end the address of a link, and the others would format."""
    escaped = line(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return escaped.translate(LOOKALIKES)


# Marks of Slack's own formatting, as characters that look like them and mean nothing to it.
LOOKALIKES = str.maketrans({"*": "∗", "_": "ˍ", "~": "∼", "`": "ʼ", "|": "¦"})  # noqa: RUF001


# --- webhooks ---------------------------------------------------------------------------------


def as_json(letter: Letter) -> bytes:
    """As Standard Webhooks has it: type, timestamp, data."""
    document = {
        "type": f"romulus.{letter.kind}",
        "timestamp": letter.at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "data": {
            "id": str(letter.id),
            "subject": subject(letter),
            "says": line(letter.lede),
            "items": [
                {
                    "title": line(item.title),
                    "url": item.url,
                    "facts": {name: line(value) for name, value in item.facts},
                }
                for item in letter.items
            ],
            "more": letter.more,
            "url": letter.url,
        },
    }
    return json.dumps(document, ensure_ascii=False).encode()
