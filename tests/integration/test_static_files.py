"""The files of the pages as they are gathered: whole sheets, under names of their content."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import settings as of_project
from django.core.management import call_command
from pytest_django import Settings

from romulus_site.static_files import FOR_READERS, IMPORT

CSS = Path(of_project.BASE_DIR) / "static" / "css"


@pytest.fixture
def gathered(settings: Settings, tmp_path: Path) -> Path:
    settings.STATIC_ROOT = str(tmp_path)
    settings.STORAGES = settings.STORAGES | {
        "staticfiles": {"BACKEND": "romulus_site.static_files.Gathered"}
    }
    call_command("collectstatic", interactive=False, verbosity=0)
    return tmp_path / "css"


def named_by_content(gathered: Path, sheet: str) -> Path:
    (found,) = gathered.glob(f"{sheet}.*.css")
    return found


@pytest.mark.parametrize("sheet", ["console", "case"])
def test_a_sheet_is_gathered_with_those_that_it_imports(gathered: Path, sheet: str) -> None:
    parts = IMPORT.findall((CSS / f"{sheet}.css").read_text())
    whole = named_by_content(gathered, sheet).read_text()
    assert len(parts) > 1
    assert "@import" not in whole
    places = [whole.index(FOR_READERS.sub("", (CSS / part).read_text()).strip()) for part in parts]
    assert places == sorted(places)


def test_what_is_imported_comes_without_what_is_for_its_readers(gathered: Path) -> None:
    whole = named_by_content(gathered, "console").read_text()
    first, _, rest = whole.partition("*/")  # what the sheet itself says
    assert first.startswith("/* What every page needs")
    assert "/*" not in rest
    assert "\n " not in rest


def test_what_is_for_readers_ends_where_it_ends() -> None:
    sheet = "/* a */\n@layer x {\n  a { b: c; } /* d */ e > f { g: h\n    i; }\n\n  j { k: l }\n}\n"
    plain = "\n@layer x {\na { b: c; }  e > f { g: h\ni; }\nj { k: l }\n}\n"
    assert FOR_READERS.sub("", sheet) == plain


def test_what_is_imported_into_a_layer_stays_a_file_of_its_own(gathered: Path) -> None:
    assert "layer(screens.django)" in named_by_content(gathered, "admin").read_text()


def test_another_part_gives_the_whole_another_name(
    settings: Settings, tmp_path: Path, gathered: Path
) -> None:
    before = named_by_content(gathered, "console").name
    changed = tmp_path / "sources" / "css"
    changed.mkdir(parents=True)
    for sheet in CSS.glob("*.css"):
        (changed / sheet.name).write_text(sheet.read_text())
    (changed / "tokens.css").write_text((CSS / "tokens.css").read_text() + ":root { --new: 1; }")
    settings.STATICFILES_DIRS = [str(changed.parent), *settings.STATICFILES_DIRS]
    settings.STATIC_ROOT = str(tmp_path / "again")
    call_command("collectstatic", interactive=False, verbosity=0)
    assert named_by_content(tmp_path / "again" / "css", "console").name != before
