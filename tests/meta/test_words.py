"""What must not be in the repository: where it was made, and which hosts it was made with."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT = {
    *(".py", ".md", ".toml", ".txt", ".yaml", ".yml", ".html", ".css", ".js", ".svg", ".sql"),
    *(".json", ".cfg", ".ini", ".sh", ""),
}
# Home folders of whoever wrote it. Put together here, so that this file does not find itself.
HOMES = re.compile("/" + r"(?:home|Users)/[A-Za-z][\w.-]*/|" + "/" + r"root/|[A-Z]:\\Users\\")


def files() -> list[Path]:
    """The text files that are, or are about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode:
        pytest.skip("this is no git checkout")
    found = [ROOT / name for name in listed.stdout.split("\0") if name]
    return [file for file in found if file.is_file() and file.suffix in TEXT]


def places(pattern: re.Pattern[str] | str, among: list[Path]) -> list[str]:
    """Where `pattern` stands, as file:line."""
    return [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in among
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), start=1)
        if re.search(pattern, line)
    ]


def test_no_file_names_the_folder_of_this_checkout() -> None:
    # Anywhere, but not as the beginning of another name, or inside another path.
    assert places(rf"(?<![\w.]){re.escape(str(ROOT))}(?![\w-])", files()) == []


def test_no_file_names_somebody_s_home() -> None:
    assert places(HOMES, files()) == []


def test_requirement_files_name_no_host_and_no_index() -> None:
    requirements = sorted((ROOT / "requirements").glob("*.txt"))
    assert requirements
    forbidden = r"://|^\s*--?(?:index|extra-index|find-links|trusted-host|i\b|f\b)|@\s*(?:file|git)"
    assert places(forbidden, requirements) == []


def test_every_requirement_is_pinned_and_hashed() -> None:
    for file in (ROOT / "requirements").glob("*.txt"):
        text = re.sub(r"\\\n\s*", " ", file.read_text())
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                assert re.match(r"[\w.-]+(?:\[[\w,-]+\])?==\S+ ", line), f"{file.name}: {line[:80]}"
                assert "--hash=sha256:" in line, f"{file.name}: {line[:80]}"


def test_no_lock_file_that_names_hosts_is_kept() -> None:
    assert [file.name for file in files() if file.name in {"uv.lock", "poetry.lock"}] == []


def test_no_file_holds_a_private_key() -> None:
    header = "-----BEGIN " + r"(?:RSA |EC |OPENSSH )?PRIVATE KEY"
    assert places(header, files()) == []
