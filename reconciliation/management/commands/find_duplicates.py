"""`manage.py find_duplicates`: is there anything at a destination twice that was meant once?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from reconciliation.models import Provider
from reconciliation.services.duplicates import Audit, find_duplicates
from workflows.management.base import ConsoleCommand, Refused, positive

FOUND = 3
SINCE_DAYS = 30
# Slow enough for any provider's limit beside the work itself.
PER_SECOND = 2


class Command(ConsoleCommand):
    help = (
        "Ask the destinations for every operation that was sent, slowly, and report effects that "
        "are there twice. Exit code 3: some are."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("provider", nargs="?", help="slug; all of them otherwise")
        parser.add_argument(
            "--since", type=positive, default=SINCE_DAYS, metavar="DAYS", help="how far back"
        )
        parser.add_argument(
            "--per-second", type=positive, default=PER_SECOND, help="questions a second at most"
        )

    def perform(self, given: argparse.Namespace) -> None:
        provider = None
        if given.provider:
            provider = Provider.objects.filter(slug=given.provider).first()
            if provider is None:
                raise Refused(f"There is no provider {given.provider!r}.")
        audit = find_duplicates(
            provider,
            since=timedelta(days=given.since),
            per_second=given.per_second,
            say=self.say,
        )
        self.answer(given, document_of(audit), lines_of(audit))
        if audit.doubles:
            error = Refused(f"{len(audit.doubles)} operations have more than one effect.")
            error.returncode = FOUND
            raise error

    def say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)
        sys.stderr.flush()


def document_of(audit: Audit) -> dict[str, Any]:
    return {
        "asked": audit.asked,
        "unanswered": audit.unanswered,
        "not_listed": audit.not_listed,
        "doubles": [
            {
                "operation": str(double.operation),
                "provider": double.provider,
                "summary": double.summary,
                "resources": list(double.resources),
            }
            for double in audit.doubles
        ],
    }


def lines_of(audit: Audit) -> Iterator[str]:
    yield f"{audit.asked} operations asked for, {len(audit.doubles)} with more than one effect"
    if audit.unanswered:
        yield f"{audit.unanswered} could not be asked for"
    if audit.not_listed:
        yield f"{audit.not_listed} at providers without a look-up: nothing can be said of them"
    for double in audit.doubles:
        resources = ", ".join(double.resources)
        yield f"  {double.operation}  {double.provider}  {double.summary}: {resources}"
