"""`manage.py check_audit`: whether the audit record is whole."""

from __future__ import annotations

import argparse

from reconciliation.services.audit import check_chain
from workflows.management.base import ConsoleCommand, Refused
from workflows.management.stopping import operator


class Command(ConsoleCommand):
    help = (
        "Check the chain of the audit record from its first entry on, and put on record what was "
        "found. Ends with 1 when an entry was changed or is missing."
    )

    def perform(self, given: argparse.Namespace) -> None:
        found = check_chain(f"command:{operator()}")
        upto, broken = found.detail["upto"], found.detail["broken"]
        head = f"{found.seq}:{found.hash}"
        if broken is not None:
            raise Refused(
                f"entry {broken} was changed, or the one before it is missing: compare the record "
                "with a copy from before; until then trust nothing after it"
            )
        said = {"upto": upto, "broken": None, "head": head}
        self.answer(given, said, [f"Whole up to entry {upto}. It now ends with {head}"])
