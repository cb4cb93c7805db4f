"""The tags and filters of the console, loaded in every template (settings, `builtins`).

Each returns markup made with `format_html`, so that whatever a provider or a person wrote is
shown as text. Nothing here reads the clock when the page gives its own `now`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from uuid import UUID

from django.template import Context, Library
from django.templatetags.static import static
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from romulus_site.admin_about import about
from romulus_site.vocabulary import word
from workflows.core.durations import age, took, zone_name

register = Library()

ID_TAIL = 6  # people type and compare the last six characters of an ID


# --- icons and states -------------------------------------------------------------------------


@register.simple_tag
@lru_cache(maxsize=256)  # a list shows the same few hundreds of times
def icon(name: str) -> SafeString:
    """One symbol of the icon file; hidden from screen readers, since words stand beside it."""
    return format_html(
        '<svg class="i" aria-hidden="true"><use href="{}#i-{}"/></svg>',
        static("img/icons.svg"),
        name,
    )


@register.simple_tag
def state_badge(kind: str, state: str, *, large: bool = False, heading: bool = False) -> SafeString:
    """A state with its tint, icon and word; `heading` uses the words of a page's header."""
    shown = word(kind, str(state))
    return format_html(
        '<span class="badge {}{}">{}{}</span>',
        shown.classes,
        " lg" if large else "",
        icon(shown.icon),
        (heading and shown.heading) or shown.text,
    )


@register.simple_tag
def state(kind: str, state: str, text: str = "") -> SafeString:
    """A state without tint, for dense rows; `text` stands in for the word."""
    shown = word(kind, str(state))
    return format_html(
        '<span class="state tone-{}">{}{}</span>', shown.tone, icon(shown.icon), text or shown.text
    )


@register.simple_tag
def state_icon(kind: str, state: str) -> SafeString:
    """The icon alone, where the word is written beside it."""
    return icon(word(kind, str(state)).icon)


@register.simple_tag
def state_word(kind: str, state: str) -> str:
    """The word alone, where nothing can be drawn: on a page that is read away from the console."""
    return word(kind, str(state)).text


@register.simple_tag
def state_classes(kind: str, state: str) -> str:
    """The CSS classes of a state: its tone, and `hatched` or `cut`."""
    return word(kind, str(state)).classes


# --- times ------------------------------------------------------------------------------------


@register.simple_tag(takes_context=True)
def when(
    context: Context, at: datetime | None, style: str = "ago", *, focus: bool = False
) -> SafeString:
    """A time both ways: relative to the page's `now`, and absolute with its zone.

    `style`: `ago` "3 h 7 min ago" or "in 52 min" · `due` "in 52 min" or "52 min late" · `age`
    "3 h 7 min", since then · `left` "52 min", until then · `old` "4 min old" · `time` "23:58" ·
    `clock` "23:58:14" · `exact` "23:58:14.018" · `day` "10 Mar 23:58".
    `focus` makes it focusable: only where it stands alone, never in every row of a table.
    """
    if at is None:
        return format_html('<span class="muted" aria-label="none">{}</span>', "-")
    own = in_zone(context, at)
    if time_of_day := CLOCKS.get(style):
        relative, moving = time_of_day(own), ""
    else:
        now = context.get("now") or timezone.now()
        relative, moving = _relative(at, now, style), format_html(' data-rel="{}"', style)
    return format_html(
        '<time class="t" datetime="{}"{}{}><span class="rel">{}</span>'
        '<span class="abs">{}{}</span></time>',
        at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        moving,
        format_html(' tabindex="{}"', 0) if focus else "",
        relative,
        PREFIXES.get(style, ""),
        _absolute(own, exact=style in ("clock", "exact")),
    )


@register.simple_tag(takes_context=True)
def at(context: Context, moment: datetime, *, exact: bool = False) -> str:
    """A time in words, in the reader's zone and with it: "10 Mar 2026, 04:12:40 CET"."""
    return _absolute(in_zone(context, moment), exact=exact)


@register.simple_tag(takes_context=True)
def day(context: Context, moment: datetime) -> str:
    """A day in the reader's zone: "10 Mar 2026"."""
    own = in_zone(context, moment)
    return f"{own.day} {own:%b %Y}"


@register.simple_tag(takes_context=True)
def clock(context: Context, moment: datetime, *, seconds: bool = False) -> str:
    """A time of day in the reader's zone and with it: "04:12 CET"."""
    own = in_zone(context, moment)
    return f"{own:{'%H:%M:%S' if seconds else '%H:%M'}} {zone_name(own)}"


@register.simple_tag(takes_context=True)
def zone(context: Context, moment: datetime) -> str:
    """What the reader's zone is called at `moment`: for the head of a column of times."""
    return zone_name(in_zone(context, moment))


def in_zone(context: Context, moment: datetime) -> datetime:
    """`moment` in the reader's zone; in UTC at the calendar's two ends, which shift beyond it."""
    try:
        return moment.astimezone(zone_of(context))
    except OverflowError:
        return moment.astimezone(UTC)


def zone_of(context: Context) -> tzinfo:
    """The zone that the reader has chosen; UTC for nobody, and where there is no request."""
    profile = getattr(context.get("request"), "profile", None)
    return profile.zone if profile else UTC


def _absolute(own: datetime, *, exact: bool) -> str:
    """Keep in step with `absolute` in static/js/console.js."""
    time = _exact(own) if exact else f"{own:%H:%M:%S}"
    return f"{own.day} {own:%b %Y}, {time} {zone_name(own)}"


def _exact(at: datetime) -> str:
    return f"{at:%H:%M:%S}.{at.microsecond // 1000:03}"


# Styles that do not move as time goes by.
SECOND = timedelta(seconds=1)
CLOCKS: dict[str, Callable[[datetime], str]] = {
    "clock": lambda at: f"{at:%H:%M:%S}",
    "exact": _exact,
    "time": lambda at: f"{at:%H:%M}",
    "day": lambda at: f"{at.day} {at:%b %H:%M}",
}
PREFIXES = {"age": "since ", "left": "until ", "old": "seen "}


def _relative(at: datetime, now: datetime, style: str) -> str:
    """Keep in step with `relative` in static/js/console.js, which goes on counting."""
    match style:
        case "age":
            return age(now - at)
        case "left":
            return age(at - now)
        case "old":
            return f"{age(now - at)} old"
        case "due":
            return f"in {age(at - now)}" if at > now else f"{age(now - at)} late"
        case _ if at - now >= SECOND:
            return f"in {age(at - now)}"
        case _:  # what was written an instant after the page's own now is not to come
            return f"{age(now - at)} ago"


register.filter("age", age)
register.filter("took", took)
register.filter("about", about)


# --- names and numbers ------------------------------------------------------------------------


@register.filter
def short_id(value: UUID | str) -> str:
    """The last six characters of an ID."""
    return str(value)[-ID_TAIL:]


@register.simple_tag
def copyable_id(value: UUID | str, noun: str = "") -> SafeString:
    """An ID whose last six characters stand out, with a button "Copy <noun> ID"."""
    text = str(value)
    return format_html(
        '<span class="cid"><code><span>{}</span><b>{}</b></code>'
        '<button type="button" class="copy" data-copy="{}" aria-label="Copy {}">{}</button></span>',
        text[:-ID_TAIL],
        text[-ID_TAIL:],
        text,
        f"{noun} ID".strip(),
        icon("copy"),
    )


@register.simple_tag
def initials(name: str, *, group: bool = False, large: bool = False) -> SafeString:
    """The mark of a person (round) or a group (square); nobody has a dashed one."""
    words = [part for part in str(name).replace("-", " ").replace("_", " ").split() if part]
    letters = (words[0][0] + words[1][0] if len(words) > 1 else words[0][:2]) if words else "?"
    classes = "".join(
        (" group" if group else "", " none" if not words else "", " lg" if large else "")
    )
    return format_html('<span class="ava{}" aria-hidden="true">{}</span>', classes, letters.upper())


@register.filter
def seen(url: str, fingerprint: str) -> str:
    """The address that a region polls: with what it shows already, so that it is told only of
    what is new."""
    return f"{url}{'&' if '?' in url else '?'}seen={fingerprint}"


@register.filter
def percent(value: float) -> str:
    """A length or position inside an SVG, as an attribute: "12.34%"."""
    return f"{value:.2f}%"
