"""The tags of the console: escaping, the words of times, and IDs as people compare them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.template import Context, Template

from workflows.core.durations import age, took

NOW = datetime(2026, 3, 10, 3, 12, 40, tzinfo=UTC)
ID = UUID("019cd4f3-7b9c-7a41-9d02-5b0e7ac84e6f")
MARKUP = '<img src=x onerror="document.title=1">'


def rendered(source: str, **context: Any) -> str:
    return Template(source).render(Context({"now": NOW, **context}))


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(), "0 s"),
        (timedelta(seconds=41.9), "41 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(seconds=119), "1 min 59 s"),
        (timedelta(seconds=120), "2 min"),
        (timedelta(minutes=52, seconds=59), "52 min"),
        (timedelta(hours=3, minutes=7), "3 h 7 min"),
        (timedelta(hours=4), "4 h"),
        (timedelta(days=2, hours=4, minutes=30), "2 d 4 h"),
    ],
)
def test_an_age_has_two_units_at_most(length: timedelta, text: str) -> None:
    assert age(length) == text


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(milliseconds=84), "84 ms"),
        (timedelta(seconds=2.12), "2.1 s"),
        (timedelta(seconds=30), "30.0 s"),
        (timedelta(hours=1, minutes=15), "1 h 15 min"),
    ],
)
def test_how_long_a_machine_took(length: timedelta, text: str) -> None:
    assert took(length) == text


@pytest.mark.parametrize(
    ("style", "seconds", "relative"),
    [
        ("ago", -11_220, "3 h 7 min ago"),
        ("ago", 3120, "in 52 min"),
        ("ago", 1, "in 1 s"),
        ("ago", 0.4, "0 s ago"),  # written an instant after the page read its clock
        ("due", 3120, "in 52 min"),
        ("due", -3120, "52 min late"),
        ("age", -11_220, "3 h 7 min"),
        ("left", 3120, "52 min"),
        ("old", -240, "4 min old"),
    ],
)
def test_a_time_is_shown_relative_to_the_page_and_absolute(
    style: str, seconds: int, relative: str
) -> None:
    html = rendered("{% when at style %}", at=NOW + timedelta(seconds=seconds), style=style)
    assert f'<span class="rel">{relative}</span>' in html
    assert f'data-rel="{style}"' in html
    assert " UTC</span></time>" in html


@pytest.mark.parametrize(
    ("style", "text", "absolute"),
    [
        ("time", "03:12", "10 Mar 2026, 03:12:40 UTC"),
        ("day", "10 Mar 03:12", "10 Mar 2026, 03:12:40 UTC"),
        ("clock", "03:12:40", "10 Mar 2026, 03:12:40.018 UTC"),
        ("exact", "03:12:40.018", "10 Mar 2026, 03:12:40.018 UTC"),
    ],
)
def test_a_clock_time_does_not_move(style: str, text: str, absolute: str) -> None:
    html = rendered("{% when at style %}", at=NOW + timedelta(milliseconds=18), style=style)
    assert f'<span class="rel">{text}</span>' in html
    assert "data-rel" not in html
    assert absolute in html


def test_a_time_that_is_not_there_shows_as_none() -> None:
    assert 'aria-label="none"' in rendered("{% when at %}", at=None)


def test_only_a_time_that_stands_alone_can_be_focused() -> None:
    assert "tabindex" not in rendered("{% when now %}")
    assert 'tabindex="0"' in rendered("{% when now focus=True %}")


def test_a_badge_has_tint_icon_and_word() -> None:
    html = rendered('{% state_badge "operation" "unknown" %}')
    assert 'class="badge tone-unk hatched"' in html
    assert 'icons.svg#i-unknown"' in html
    assert html.endswith("Unknown</span>")


def test_a_header_says_what_is_unknown() -> None:
    assert "Outcome unknown" in rendered('{% state_badge "operation" "unknown" heading=True %}')
    assert ">Held<" in rendered('{% state_badge "operation" "held" heading=True %}').replace(
        "</svg>", ">"
    )


def test_the_last_six_characters_of_an_id_stand_out_and_all_of_it_is_copied() -> None:
    html = rendered('{% copyable_id id "operation" %}', id=ID)
    assert f"<span>{str(ID)[:-6]}</span><b>c84e6f</b>" in html
    assert f'data-copy="{ID}"' in html
    assert 'aria-label="Copy operation ID"' in html
    assert rendered("{{ id|short_id }}", id=ID) == "c84e6f"


@pytest.mark.parametrize(
    ("name", "letters"),
    [("Refunds owner", "RO"), ("finance", "FI"), ("on-call", "OC"), ("", "?"), ("é", "É")],
)
def test_initials(name: str, letters: str) -> None:
    assert f">{letters}</span>" in rendered("{% initials name %}", name=name)


def test_a_group_is_square_and_nobody_is_dashed() -> None:
    assert "ava group" in rendered("{% initials 'Finance' group=True %}")
    assert "ava none" in rendered("{% initials '' %}")


@pytest.mark.parametrize(
    "source",
    [
        "{% icon text %}",
        "{% state_badge 'run' text %}",
        "{% state 'run' 'held' text %}",
        "{% copyable_id text text %}",
        "{% initials text %}",
        "{{ text|short_id }}",
    ],
)
def test_markup_in_data_is_shown_as_text(source: str) -> None:
    html = rendered(source, text=MARKUP)
    assert "<img" not in html
    assert 'onerror="' not in html


@pytest.mark.parametrize(
    ("moment", "zone"),
    [
        (datetime(9999, 12, 31, 23, 59, tzinfo=UTC), "Pacific/Auckland"),
        (datetime(1, 1, 1, tzinfo=UTC), "America/New_York"),
    ],
)
def test_the_ends_of_the_calendar_are_told_in_utc_where_a_zone_shifts_beyond_them(
    moment: datetime, zone: str
) -> None:
    request = SimpleNamespace(profile=SimpleNamespace(zone=ZoneInfo(zone)))
    tags = "{% at moment %} {% day moment %} {% clock moment %} {% zone moment %} {% when moment %}"
    assert " UTC" in rendered(tags, moment=moment, request=request)
