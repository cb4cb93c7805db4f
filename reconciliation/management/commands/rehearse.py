"""`manage.py rehearse`: show what a provider does with each fault, before it is trusted."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from reconciliation.core.errors import InvalidProvider
from reconciliation.core.rehearsals import claims_of
from reconciliation.models import Provider, Rehearsal
from reconciliation.rehearsal.cases import BY_NAME, cases_for, is_complete
from reconciliation.rehearsal.play import Played, rehearse
from reconciliation.services.rehearsals import ensure_may_be_called, keep_rehearsal, sandbox_of
from workflows.management.base import ConsoleCommand, Refused, WrongUse

BROKEN = 3


class Command(ConsoleCommand):
    help = (
        "Play the faults against a provider's sandbox: what comes of each at the destination, in "
        "the ledger and of the run, and whether the contract holds. Exit code 3: a double effect, "
        "a wrong advance, or a contract that does not hold."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("provider", nargs="?", help="slug")
        parser.add_argument("--all", action="store_true", help="every provider with a sandbox")
        parser.add_argument(
            "--case", action="append", default=[], choices=sorted(BY_NAME), help="only this one"
        )

    def perform(self, given: argparse.Namespace) -> None:
        providers = chosen(given)
        for provider in providers:
            ensure_may_be_called(sandbox_of(provider))
        results = [self.rehearsed(provider, given) for provider in providers]
        self.answer(given, [document for document, _ in results], lines_of(results))
        failed = [document["provider"] for document, _ in results if is_bad(document)]
        if failed:
            error = Refused(f"See above: {', '.join(failed)}.")
            error.returncode = BROKEN
            raise error

    def rehearsed(
        self, provider: Provider, given: argparse.Namespace
    ) -> tuple[dict[str, Any], Sequence[Played]]:
        sandbox = sandbox_of(provider)
        assert provider.contract_version is not None, "sandbox_of has made sure"
        claims = claims_of(provider.contract_version.contract)
        cases = cases_for(claims, given.case)
        self.say(f"{provider.slug}, under {provider.contract_version}: {len(cases)} cases")
        outcome, played = rehearse(sandbox, cases, self.say)
        outcome = replace(outcome, complete=is_complete(cases, claims))
        return document_of(keep_rehearsal(provider, outcome, by="system")), played

    def say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)
        sys.stderr.flush()


def chosen(given: argparse.Namespace) -> list[Provider]:
    providers = Provider.objects.select_related("contract_version").filter(
        stands_in_for__isnull=True
    )
    if given.all:
        found = [provider for provider in providers.order_by("slug") if has_sandbox(provider)]
        if not found:
            raise Refused("No provider has a sandbox: set one up in the admin.")
        return found
    if not given.provider:
        slugs = ", ".join(providers.order_by("slug").values_list("slug", flat=True)) or "none yet"
        raise WrongUse(f"Name a provider, or give --all. There are: {slugs}")
    named = providers.filter(slug=given.provider).first()
    if named is None:
        raise Refused(f"There is no provider {given.provider!r}.")
    return [named]


def has_sandbox(provider: Provider) -> bool:
    try:
        sandbox_of(provider)
    except InvalidProvider:
        return False
    return True


# --- what is told -------------------------------------------------------------------------------


def document_of(row: Rehearsal) -> dict[str, Any]:
    return {
        "provider": row.provider.slug,
        "rehearsal": str(row.pk),
        "contract": str(row.contract_version),
        "complete": row.complete,
        "claims": row.claims,
        "breaches": row.breaches,
        "cases": row.cases,
    }


def is_bad(document: dict[str, Any]) -> bool:
    return bool(document["breaches"]) or "contradicted" in document["claims"].values()


def lines_of(results: Sequence[tuple[dict[str, Any], Sequence[Played]]]) -> Iterator[str]:
    for document, _ in results:
        yield f"{document['provider']}, {document['contract']}"
        for case in document["cases"]:
            yield from lines_of_case(case)
        claims = ", ".join(f"{claim} {verdict}" for claim, verdict in document["claims"].items())
        yield f"  contract     {claims or 'claims nothing that could be shown'}"
        yield f"  promises     {document['breaches'] or 'none'} broken"


def lines_of_case(case: dict[str, Any]) -> Iterator[str]:
    there, ledger, run = case["destination"], case["ledger"], case["run"]
    effects = ", ".join(there["effects"]) or "no effect"
    asked = "" if there["counted"] else " (by its answers alone)"
    yield f"  {case['case']}: {case['what']}"
    yield f"    destination  {effects}{asked}; {there['requests']} requests"
    sent = "; ".join(ledger["transmissions"]) or "nothing sent"
    yield f"    ledger       {ledger['state']} ({sent})"
    yield f"    run          {run['state']}{': ' + run['reason'] if run['reason'] else ''}"
    shown = ", ".join(f"{claim} {verdict}" for claim, verdict in case["claims"].items())
    yield f"    contract     {shown or 'nothing to show here'}"
    for breach in case["breaches"]:
        yield f"    BROKEN       {breach}"
