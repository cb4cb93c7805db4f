"""A walk through the console: every page that leads from one to another, as browsers read them."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from urllib.parse import urldefrag, urlsplit

from django.test import Client
from django.urls import Resolver404, resolve

from tests.statements import statements

SCHEMES = {"", "http", "https", "mailto"}
LINKS = {"href", "src", "action", "hx-get", "hx-post", "formaction"}
AT_MOST = 400


@dataclass
class Reading(HTMLParser):
    """A page as a browser has it: where it leads, its text, and what is wrong with it."""

    links: list[str] = field(default_factory=list)
    fragments: list[tuple[str, str]] = field(default_factory=list)  # where, and into which element
    ids: set[str] = field(default_factory=set)
    text: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    is_whole: bool = False  # not a fragment of one
    statements: int = 0  # that reading it took

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.is_whole |= tag == "html"
        named = {name: value or "" for name, value in attrs}
        self.ids.add(named.get("id", ""))
        if "hx-get" in named:
            into = named.get("hx-target", "").removeprefix("#") or named.get("id", "")
            self.fragments.append((named["hx-get"], into))
        for name, value in attrs:
            if name.startswith("on") or (tag == "img" and value == "x"):
                self.wrong.append(f"<{tag} {name}={value!r}>")
            if name in LINKS and value:
                if urlsplit(value).scheme not in SCHEMES and not value.startswith("data:image/"):
                    self.wrong.append(f"<{tag}> leads to {value!r}")
                if name in ("href", "hx-get"):
                    self.links.append(value)
            self.text.append(value or "")

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def walked(
    client: Client,
    of_each_kind: int,
    first: Sequence[str] = (),
    counts: Callable[[str], bool] = lambda _: True,
) -> dict[str, Reading]:
    """Read so many pages of each kind of all that count and can be reached, the administration's
    too; and `first` of all those that are not to be missed."""
    to_read = deque([*first, "/", "/admin/"])
    known = set(to_read)
    kinds: Counter[str] = Counter()
    read: dict[str, Reading] = {}
    while to_read and len(read) < AT_MOST:
        path = to_read.popleft()
        kind = kind_of(path)
        if not kind or kinds[kind] >= of_each_kind or not counts(path):
            continue
        kinds[kind] += 1
        with statements() as sent:
            answer = client.get(path, follow=True)
        assert answer.status_code < 500, f"{path}: {answer.status_code}"
        if "html" not in answer.headers.get("Content-Type", ""):
            continue
        # A page that led here was another.
        page = read[path] = Reading(statements=0 if answer.redirect_chain else len(sent))
        page.feed(answer.content.decode())
        for link in page.links:
            there = urldefrag(link).url
            there = f"{urlsplit(path).path}{there}" if there.startswith("?") else there
            if there.startswith("/") and there not in known:
                known.add(there)
                to_read.append(there)
    return read


def kind_of(path: str) -> str:
    """Which view it is, asked for what; empty for what is no page to read."""
    parts = urlsplit(path)
    try:
        view = resolve(parts.path).view_name
    except Resolver404:
        return ""
    names = sorted({pair.partition("=")[0] for pair in parts.query.split("&")})
    if view.startswith("review") and names != [""]:
        names = ["filtered"]  # any of its filters stands for all: together they are a thousand
    return "" if view in ("logout", "admin:logout") else f"{view} {names}"
