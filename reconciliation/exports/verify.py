#!/usr/bin/env python3
"""Check an evidence pack of Romulus, offline, with Python 3.8 or newer and nothing else.

    python verify.py                     the folder that this file lies in
    python verify.py operation-….zip     a pack as it was downloaded
    python verify.py --head NUMBER:HASH  …and that the record ended with the entry you were told

It checks that no file was changed, added or taken away since; that each entry of the audit record
is what its digest says; that every one of them belongs to the one chain which ends with the
export of this very case; and that the entry of the export names the digests of case.json, of what
there is to read and its style, and the number of entries about the case, and that all of them are
here, each once.

What it cannot show: that the chain is the one that Romulus keeps, and not one that was made to
fit. For that have somebody read the hash of the last entry to you from the page of the audit
record, and give it as --head.

Exit codes: 0 whole, 1 not whole (says what), 2 cannot be read.
"""

# This file goes into every pack as it is: standard library alone, nothing of Romulus.

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import zipfile
import zlib
from pathlib import Path
from typing import IO, Any, Iterator  # noqa: UP035 (as Python 3.8 has it)

BLOCK = 65536
CACHE = "__pycache__/verify."
SUMS, CHAIN, CASE = "SHA256SUMS", "audit/chain.json", "case.json"
# What Python raises where a file is damaged, or is made so that it cannot be read.
UNREADABLE = (
    *(OSError, EOFError, ValueError, LookupError, TypeError, AttributeError, RuntimeError),
    *(zipfile.BadZipFile, zlib.error),
)
# What the entry of the export names the digests of.
NAMED = {
    "case_sha256": CASE,
    "page_sha256": "index.html",
    "style_sha256": "pack.css",
    "readme_sha256": "README.txt",
}
# What a pack holds beside the entries that are shown.
PARTS = {*NAMED.values(), CHAIN, SUMS, "verify.py"}


class Folder:
    """A pack that lies unpacked."""

    def __init__(self, root: str) -> None:
        self.root = Path(root)

    def names(self) -> set[str]:
        found = (path for path in self.root.rglob("*") if path.is_file())
        return {path.relative_to(self.root).as_posix() for path in found}

    def open(self, name: str) -> IO[bytes]:
        return (self.root / name).open("rb")


class Zip:
    """A pack as it was downloaded: one folder in a zip file."""

    def __init__(self, path: str) -> None:
        self.archive = zipfile.ZipFile(path)
        listed = self.archive.namelist()
        self.prefix = listed[0].partition("/")[0] + "/" if listed else ""
        if any(not name.startswith(self.prefix) for name in listed):
            raise ValueError("it holds files beside its one folder")
        if len(set(listed)) != len(listed):
            raise ValueError("it holds two files of one name")

    def names(self) -> set[str]:
        return {name[len(self.prefix) :] for name in self.archive.namelist()}

    def open(self, name: str) -> IO[bytes]:
        return self.archive.open(self.prefix + name)


class Pack:
    """The files of a pack, in a folder or a zip file."""

    def __init__(self, path: str) -> None:
        self.files: Folder | Zip = Zip(path) if Path(path).is_file() else Folder(path)
        self.chain: dict[str, Any] = json.loads(self.read(CHAIN))
        self.case: dict[str, Any] = json.loads(self.read(CASE))

    def read(self, name: str) -> bytes:
        with self.files.open(name) as file:
            return file.read()

    def digest(self, name: str) -> str:
        digest = hashlib.sha256()
        with self.files.open(name) as file:
            for block in iter(lambda: file.read(BLOCK), b""):
                digest.update(block)
        return digest.hexdigest()

    @property
    def head(self) -> str:
        return f"{self.chain['head']['seq']}:{self.chain['head']['hash']}"

    def entries(self) -> Iterator[dict[str, Any]]:
        """The entries of the record that are shown."""
        for seq in self.chain["shown"]:
            said = json.loads(self.read(file_of(seq)))
            names = ("seq", "at", "actor", "verb", "object", "detail")
            yield dict(zip(names, said))  # noqa: B905 (Python 3.10 has `strict`)


def file_of(seq: int) -> str:
    return f"audit/{seq}.json"


# --- the files --------------------------------------------------------------------------------


def wrong_files(pack: Pack) -> Iterator[str]:
    lines = pack.read(SUMS).decode().splitlines()
    listed = {name: digest for digest, _, name in (line.partition("  ") for line in lines)}
    # What Python leaves beside a script that it has run is nobody's.
    present = {name for name in pack.files.names() if not name.startswith(CACHE)} - {SUMS}
    for name in sorted(set(listed) - present):
        yield f"the file {name} is missing"
    for name in sorted(present - set(listed)):
        yield f"the file {name} was added"
    for name in sorted(present - PARTS - set(map(file_of, pack.chain["shown"]))):
        yield f"the file {name} is part of no pack"
    for name in sorted(present & set(listed)):
        if pack.digest(name) != listed[name]:
            yield f"the file {name} was changed"


# --- the chain --------------------------------------------------------------------------------


def hash_of(link: dict[str, Any]) -> str:
    """The hash of an entry, from what its link in the chain says."""
    if is_of_first_rule(link):
        return str(link["content"])
    lines = [str(link["seq"]), link["content"], link["previous_hash"], link["skip_hash"]]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def is_of_first_rule(link: dict[str, Any]) -> bool:
    """Written before single entries could be placed: it is what it says, and proves no more."""
    return bool(link.get("first_rule"))


def carried_by(link: dict[str, Any]) -> list[tuple[int, str]]:
    """The earlier entries whose hashes an entry carries."""
    if is_of_first_rule(link):
        return []
    seq = link["seq"]
    return [(seq - 1, link["previous_hash"]), (seq & (seq - 1), link["skip_hash"])]


def wrong_links(pack: Pack) -> Iterator[str]:
    """Follow the links from the head: each must be vouched for by one before it."""
    chain, head = pack.chain, pack.chain["head"]["seq"]
    vouched: dict[int, str] = {head: pack.chain["head"]["hash"]}
    reached: set[int] = set()
    placed_last = head
    for link in chain["links"]:
        seq = link["seq"]
        if hash_of(link) != link["hash"]:
            yield f"entry {seq} is not what its hash says"
        if is_of_first_rule(link):
            if seq >= placed_last or vouched.get(seq, link["hash"]) != link["hash"]:
                yield f"entry {seq} cannot be of the first rule"
        elif vouched.get(seq) != link["hash"]:
            yield f"entry {seq} is not in the chain that ends with entry {head}"
        else:
            placed_last = min(placed_last, seq)
        for number, carried in carried_by(link):
            if vouched.setdefault(number, carried) != carried:
                yield f"entries name different hashes of entry {number}"
        if seq in chain["shown"]:
            reached.add(seq)
            if pack.digest(file_of(seq)) != link["content"]:
                yield f"entry {seq} does not say what its digest was made of"
    for seq in sorted(set(chain["shown"]) - reached):
        yield f"no way leads from the head to entry {seq}"


# --- the case ---------------------------------------------------------------------------------


def wrong_case(pack: Pack) -> Iterator[str]:
    case, last = pack.case, None
    if len(set(pack.chain["shown"])) < len(pack.chain["shown"]):
        yield "an entry is shown twice"
    subject = f"operation:{case['operation']['id']}"
    for number, entry in zip(pack.chain["shown"], pack.entries()):  # noqa: B905
        if entry["seq"] != number:
            yield f"entry {number} says that it is entry {entry['seq']}"
        if entry["object"] not in (subject, f"run:{case['run']['id']}"):
            yield f"entry {number} is about another case"
        last = entry if number == pack.chain["head"]["seq"] else last
    if last is None or (last["verb"], last["object"]) != ("exported", subject):
        yield "the last entry is not the export of this case"
    else:
        yield from wrong_export(pack, last["detail"])
    numbers = [row["number"] for row in case["transmissions"]]
    if numbers != list(range(1, len(numbers) + 1)):
        yield f"a transmission is missing: they are numbered {numbers}"


def wrong_export(pack: Pack, export: dict[str, Any]) -> Iterator[str]:
    """What is not as the entry of the export, which the chain vouches for, names it."""
    present = pack.files.names()
    for key, name in NAMED.items():
        # Packs of earlier versions name fewer files, and the case always.
        named = key in export or name == CASE
        if named and (name not in present or export.get(key) != pack.digest(name)):
            yield f"{name} is not what was exported"
    if export.get("entries") != len(pack.chain["shown"]):
        yield f"{export.get('entries')} entries are about this case, and not all are here"


# --- what is said -----------------------------------------------------------------------------


def problems(pack: Pack, told: str = "") -> Iterator[str]:
    """Everything that is wrong with a pack, in words; nothing for one that is whole."""
    yield from wrong_files(pack)
    yield from wrong_links(pack)
    yield from wrong_case(pack)
    if told and told != pack.head:
        yield "the record did not end with the entry that you were told"


def summary(pack: Pack) -> Iterator[str]:
    operation, chain = pack.case["operation"], pack.chain
    yield f"WHOLE: operation {operation['id']}, {operation['state']}"
    others = len(chain["links"]) - len(chain["shown"])
    yield f"{len(chain['shown'])} entries of the record are shown, {others} others by digest."
    unplaced = sum(map(is_of_first_rule, chain["links"]))
    if unplaced:
        yield f"{unplaced} of them are of the first rule: nothing here proves their place."
    yield f"The record then ended with {pack.head}"


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Check an evidence pack of Romulus, offline.")
    parser.add_argument("pack", nargs="?", default=str(Path(__file__).resolve().parent))
    parser.add_argument("--head", default="", metavar="NUMBER:HASH", help="as you were told it")
    given = parser.parse_args(arguments)
    try:
        pack = Pack(given.pack)
        found = [f"NOT WHOLE: {problem}" for problem in problems(pack, given.head)]
        said = found or list(summary(pack))
    except UNREADABLE as error:
        sys.stdout.write(f"CANNOT BE READ: {error}\n")
        return 2
    sys.stdout.writelines(f"{line}\n" for line in said)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
