"""The evidence pack: everything about one operation in a zip file that proves itself offline.

It is written to a temporary file first, in memory while it is small: what is given out is whole,
nothing is held in the database while somebody downloads, and an error is an error page.
"""

from __future__ import annotations

import hashlib
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

import structlog
from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.template.loader import render_to_string

from reconciliation import access
from reconciliation.exports import verify
from reconciliation.exports.document import Reader, case_pieces
from reconciliation.exports.excerpt import about, chain_pieces, entries_about, file_of
from reconciliation.exports.readme import readme_of
from reconciliation.models import AuditEntry, Operation
from reconciliation.selectors import operation_page
from reconciliation.services.audit import actor_of, add_entry, as_chained, lock_chain
from workflows.core.tables import listed
from workflows.services.clock import database_now

log = structlog.get_logger(__name__)

STYLE = settings.BASE_DIR / "static" / "css" / "pack.css"
IN_MEMORY = 1024 * 1024  # bytes; beyond that the file is on disk
PACK, DOCUMENT = "evidence pack", "case"
VERB = "exported"
ENTRIES_ON_PAGE = 500  # the page for reading shows the newest; the files are all there


def evidence_pack(operation: Operation, user: User) -> IO[bytes]:
    """Return the pack of an operation as `user` may see it, at its beginning; it comes from
    `access`. Whoever reads it closes it.

    The export is on record, with the digest of what it exports, before this returns.
    """
    file = new_file()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        with snapshot():
            operation = access.operations_in_full(user).get(pk=operation.pk)
            now = database_now()
            members = Members(archive, name_of(operation), now)
            reader = Reader.of(user, operation)
            # What people read is vouched for by the record, as what counts is.
            digests = {"case_sha256": members.add("case.json", case_pieces(operation, reader, now))}
            context = {
                "page": operation_page(operation, user, now),
                "now": now,
                "reader": reader,
                "entries": newest_of(operation),
            }
            page = render_to_string("reconciliation/pack.html", context)
            digests["page_sha256"] = members.add("index.html", [page])
            digests["style_sha256"] = members.add("pack.css", [STYLE.read_text()])
            readme = readme_of(operation, reader, now)
            digests["readme_sha256"] = members.add("README.txt", [readme])
        head = record_export(operation, reader, PACK, digests)
        shown = add_entries(members, operation, head)
        members.add("audit/chain.json", chain_pieces(head, shown))
        members.add("verify.py", [Path(verify.__file__).read_text()])
        members.add_checksums()
    file.seek(0)
    return file


def case_document(operation: Operation, user: User) -> IO[bytes]:
    """Return the case as one JSON document, with the entries of the record about it; as
    `evidence_pack` otherwise."""
    file = new_file()
    with snapshot():
        operation = access.operations_in_full(user).get(pk=operation.pk)
        reader = Reader.of(user, operation)
        digest = hashlib.sha256()
        file.write(b'{"case": ')
        for data in encoded(case_pieces(operation, reader, database_now())):
            digest.update(data)
            file.write(data)
    head = record_export(operation, reader, DOCUMENT, {"case_sha256": digest.hexdigest()})
    file.write(b', "audit": [')
    for data in encoded(listed(map(said_by, entries_about(operation, head.seq)))):
        file.write(data)
    file.write(b"]}\n")
    file.seek(0)
    return file


def name_of(operation: Operation) -> str:
    return f"operation-{operation.pk}"


def record_export(
    operation: Operation, reader: Reader, form: str, digests: Mapping[str, str]
) -> AuditEntry:
    """Put the export on record: who, in which form, the digests of what it says, and how many
    entries of the record are about it, this one among them."""
    with transaction.atomic():
        lock_chain()  # nothing is added between the count and this entry
        detail = {
            "form": form,
            **digests,
            "payloads": reader.payloads,
            "entries": about(operation).count() + 1,
        }
        entry = add_entry(actor_of(reader.user), VERB, f"operation:{operation.pk}", detail)
    log.info("case.exported", operation=str(operation.pk), form=form, entry=entry.seq)
    return entry


# --- the entries of the record ----------------------------------------------------------------


def add_entries(members: Members, operation: Operation, head: AuditEntry) -> set[int]:
    """Add each entry about the case as the very bytes that its digest is made of."""
    shown: set[int] = set()
    for entry in entries_about(operation, head.seq):
        members.add(file_of(entry.seq), [as_chained(entry).said.decode()])
        shown.add(entry.seq)
    return shown


def newest_of(operation: Operation) -> list[AuditEntry]:
    newest = about(operation).order_by("-seq")[:ENTRIES_ON_PAGE]
    return list(newest)[::-1]


def said_by(entry: AuditEntry) -> dict[str, Any]:
    names = ("seq", "at", "actor", "verb", "object", "detail", "previous_hash", "hash")
    return {name: getattr(entry, name) for name in names}


# --- files ------------------------------------------------------------------------------------


class Members:
    """The files of a pack, written one after another; remembers the digest of each."""

    def __init__(self, archive: zipfile.ZipFile, folder: str, at: datetime) -> None:
        self.archive, self.folder, self.at = archive, folder, at.astimezone(UTC)
        self.digests: dict[str, str] = {}

    def add(self, name: str, pieces: Iterable[str]) -> str:
        """Write a file in pieces; returns its SHA-256."""
        digest = hashlib.sha256()
        info = zipfile.ZipInfo(f"{self.folder}/{name}", self.at.timetuple()[:6])
        info.compress_type = zipfile.ZIP_DEFLATED
        info.external_attr = 0o644 << 16
        with self.archive.open(info, "w", force_zip64=True) as member:
            for data in encoded(pieces):
                digest.update(data)
                member.write(data)
        self.digests[name] = digest.hexdigest()
        return self.digests[name]

    def add_checksums(self) -> None:
        """As `sha256sum -c SHA256SUMS` reads it."""
        self.add(
            "SHA256SUMS", [f"{digest}  {name}\n" for name, digest in sorted(self.digests.items())]
        )


def encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode() for piece in pieces)


def new_file() -> IO[bytes]:
    return tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)


@contextmanager
def snapshot() -> Iterator[None]:
    """One view of the database for several questions; inside a caller's transaction, that one's.

    So the case is read as it was at one moment, without holding up who works on it.
    """
    begins = not connection.in_atomic_block
    with transaction.atomic():
        if begins:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield
