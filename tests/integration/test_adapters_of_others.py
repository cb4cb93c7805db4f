"""Adapters of other packages, found by their entry point."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciliation.adapters import registry
from reconciliation.adapters.base import Connection
from reconciliation.adapters.http import HttpAdapter
from reconciliation.core.errors import InvalidProvider
from tests.unit.facts import BLIND

HERE = Connection("https://api.example.com", "acct_1", "", "")


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that brings an adapter, one that is broken, one that is none, and one of ours."""
    (tmp_path / "their_adapter.py").write_text(
        "from reconciliation.adapters.http import HttpAdapter\n"
        "class Theirs(HttpAdapter):\n    pass\n"
    )
    metadata = tmp_path / "theirs-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[romulus.adapters]\n"
        "theirs = their_adapter:Theirs\n"
        "broken = no_such_module:Adapter\n"
        "none = pathlib:Path\n"
        "http = their_adapter:Theirs\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    forget()
    yield
    sys.modules.pop("their_adapter", None)
    forget()


def forget() -> None:
    registry.of_others.cache_clear()
    registry.loaded.cache_clear()


def test_an_adapter_of_another_package_is_used_by_its_slug(installed: None) -> None:
    assert {"theirs", "http", "email"} <= set(registry.known_adapters())
    made = registry.adapter_for("theirs", HERE, BLIND)
    assert type(made).__name__ == "Theirs"


def test_none_of_them_takes_the_place_of_ours(installed: None) -> None:
    assert type(registry.adapter_for("http", HERE, BLIND)) is HttpAdapter


@pytest.mark.parametrize(
    ("slug", "said"),
    [
        ("broken", "cannot be loaded"),
        ("none", "is no Adapter"),
        ("nothing", "no adapter 'nothing'"),
    ],
)
def test_what_cannot_be_used_is_said_and_harms_no_other(
    installed: None, slug: str, said: str
) -> None:
    with pytest.raises(InvalidProvider, match=said):
        registry.adapter_for(slug, HERE, BLIND)
    assert registry.adapter_for("theirs", HERE, BLIND)
