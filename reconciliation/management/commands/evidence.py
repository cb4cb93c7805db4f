"""`manage.py evidence`: the evidence pack of an operation, as the console gives it out."""

from __future__ import annotations

import argparse
import os
import shutil
from pathlib import Path
from typing import IO

from django.contrib.auth.models import User

from reconciliation import access
from reconciliation.exports.pack import case_document, evidence_pack, name_of
from reconciliation.models import Operation
from workflows.management.base import ConsoleCommand, Refused, an_id


class Command(ConsoleCommand):
    help = (
        "Write everything about an operation to a file that a stranger can verify offline. It "
        "holds what the named person may see, and is on record as their export."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("operation", type=an_id, help="its ID")
        parser.add_argument("--by", required=True, metavar="USERNAME", help="who exports it")
        parser.add_argument(
            "--form", choices=["pack", "case"], default="pack", help="a zip file, or one JSON file"
        )
        parser.add_argument(
            "--to", type=Path, metavar="FILE", help="operation-ID.zip or .json here, if left out"
        )

    def perform(self, given: argparse.Namespace) -> None:
        user = User.objects.filter(username=given.by, is_active=True).first()
        if user is None:
            raise Refused(f"there is no active account {given.by!r}")
        operation = operation_of(user, given)
        write = evidence_pack if given.form == "pack" else case_document
        ending = "zip" if given.form == "pack" else "json"
        target = given.to or Path(f"{name_of(operation)}.{ending}")
        with new_file(target) as file, write(operation, user) as content:
            shutil.copyfileobj(content, file)
        said = {"operation": operation.pk, "file": str(target), "bytes": target.stat().st_size}
        self.answer(given, said, [f"Written: {target}, {said['bytes']} bytes."])


def operation_of(user: User, given: argparse.Namespace) -> Operation:
    found = access.operations_in_full(user).filter(pk=given.operation).first()
    if found is None:
        raise Refused(f"there is no operation {given.operation} that {given.by} may see")
    return found


def new_file(target: Path) -> IO[bytes]:
    """A file of the owner's alone, which was not there before."""
    try:
        return os.fdopen(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")
    except OSError as error:
        raise Refused(f"{target} cannot be written: {error.strerror}") from error
