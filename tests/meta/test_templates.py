"""Every template compiles: a misspelt tag is found here, and not by a person at night."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import engines

FOLDERS = [Path(folder) for folder in settings.TEMPLATES[0]["DIRS"]]
NAMES = sorted(
    str(file.relative_to(folder))
    for folder in FOLDERS
    for file in folder.rglob("*")
    if file.suffix in {".html", ".txt", ".svg", ".xml"}
)


def source_of(name: str) -> str:
    return next(file for folder in FOLDERS if (file := folder / name).exists()).read_text()


def test_there_are_templates() -> None:
    assert len(NAMES) > 20


@pytest.mark.parametrize("name", NAMES)
def test_a_template_compiles_and_so_does_all_that_it_names(name: str) -> None:
    engines["django"].get_template(name)
    for named in re.findall(r"{%\s*(?:include|extends)\s+[\"']([^\"']+)[\"']", source_of(name)):
        engines["django"].get_template(named)


@pytest.mark.parametrize("name", NAMES)
def test_no_template_trusts_what_somebody_wrote(name: str) -> None:
    """A26: whatever a provider or a person wrote is shown as text."""
    assert not re.search(r"\|\s*safe\b|{%\s*autoescape\s+off", source_of(name))


@pytest.mark.parametrize("name", NAMES)
def test_no_template_has_script_or_style_of_its_own(name: str) -> None:
    """The content policy lets none run: it would fail silently in the browser."""
    inline = (
        r"<script(?![^>]*\bsrc=)(?![^>]*type=\"application/json\")|<style\b|\son[a-z]+=|\sstyle="
    )
    assert not re.search(inline, source_of(name))
