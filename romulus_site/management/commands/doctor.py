"""`manage.py doctor`: whether this installation can work, and what would mend it."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from romulus_site.doctor import Finding, Verdict, examined
from workflows.management.base import ConsoleCommand, Refused

MARKS = {Verdict.FINE: "ok   ", Verdict.NOTE: "note ", Verdict.WRONG: "WRONG"}


class Command(ConsoleCommand):
    help = (
        "Examine settings, database, broker, storage, workers, providers, dispatch and the audit "
        "record, and say what would mend what is wrong. Ends with 1 when something is."
    )

    def perform(self, given: argparse.Namespace) -> None:
        found = list(examined())
        self.answer(given, [asdict(each) for each in found], [line_of(each) for each in found])
        number = sum(each.verdict is Verdict.WRONG for each in found)
        if number:
            raise Refused(f"{number} of {len(found)} things are wrong")


def line_of(finding: Finding) -> str:
    helps = f" {finding.helps}" if finding.helps else ""
    return f"{MARKS[finding.verdict]} {finding.part}: {finding.text}{helps}"
