"""`manage.py check_model`: every behaviour that the contracts permit, against the product's rules.

Exits with 1 when a path leads to two effects, a wrong fact or a silent stop, when a rule could have
settled more, or when a seeded mistake is not found.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from reconciliation.core.contracts import Contract
from reconciliation.core.model_check import (
    QUICK,
    QUICKER,
    Report,
    Share,
    caught_by,
    check,
    full,
    share,
)
from reconciliation.core.model_kinds import KINDS
from reconciliation.core.model_mutants import MUTANTS
from reconciliation.core.model_nodes import Bounds
from reconciliation.services.contracts import shipped
from workflows.management.base import ConsoleCommand, Refused


class Command(ConsoleCommand):
    help = "Walk everything that the contracts permit: two effects, ever?"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "--contract",
            action="append",
            metavar="SLUG",
            help="only this shipped contract or kind, walked in full; may be given several times",
        )
        parser.add_argument(
            "--mutants", action="store_true", help="try every seeded mistake: all must be found"
        )

    def perform(self, given: argparse.Namespace) -> None:
        began = time.process_time()
        document: dict[str, Any] = {"contracts": [], "mutants": []}
        for contract, walks in picked(given.contract):
            self.stderr.write(f"walking {contract.slug}", style_func=str)
            document["contracts"].append(found(contract, walks))
        if given.mutants:
            self.stderr.write(f"trying {len(MUTANTS)} seeded mistakes", style_func=str)
            document["mutants"] = [
                {"mistake": name, "found_by": caught_by(rules, KINDS.values())}
                for name, rules in MUTANTS.items()
            ]
        document["cpu_seconds"] = round(time.process_time() - began, 1)
        self.answer(given, document, lines(document))
        wrong = problems(document)
        if wrong:
            raise Refused("\n".join(wrong))


def picked(slugs: list[str] | None) -> Iterable[tuple[Contract, tuple[Bounds, ...]]]:
    """The contracts to walk, each with how far: the kinds in full, those that ship less far."""
    known = {contract.slug: contract for contract in [*KINDS.values(), *shipped()]}
    if slugs:
        unknown = sorted(set(slugs) - set(known))
        if unknown:
            raise Refused(f"no contract {', '.join(unknown)}; known: {', '.join(sorted(known))}")
        return [(known[slug], full(known[slug])) for slug in slugs]
    kinds = {contract.slug for contract in KINDS.values()}
    return [
        (contract, full(contract) if slug in kinds else (quick(contract),))
        for slug, contract in known.items()
    ]


def quick(contract: Contract) -> Bounds:
    return replace(QUICKER if contract.look_up else QUICK, denials=0)


def found(contract: Contract, walks: tuple[Bounds, ...]) -> dict[str, Any]:
    report = Report(contract.slug)
    for bounds in walks:
        report.add(check(contract, bounds=bounds))
    settled: Share = share(contract, bounds=replace(walks[-1], rests=min(walks[-1].rests, 1)))
    return {
        "contract": contract.slug,
        "version": contract.version,
        "states": report.states,
        "worlds": report.worlds,
        "ends": dict(report.ends.most_common()),
        "breaches": report.breaches,
        "early_holds": report.early_holds,
        "settled_alone": round(settled.settled, 4),
        "most_any_safe_rule_settles": round(settled.most, 4),
        "is_most": settled.is_most,
    }


def problems(document: dict[str, Any]) -> list[str]:
    wrong = []
    for each in document["contracts"]:
        name = each["contract"]
        wrong += [f"{name}: {breach}" for breach in each["breaches"]]
        wrong += [f"{name}: held too early: {hold}" for hold in each["early_holds"]]
        if not each["is_most"]:
            wrong.append(f"{name}: a safe rule would settle more")
    missed = [each["mistake"] for each in document["mutants"] if not each["found_by"]]
    return wrong + [f"not found: {name}" for name in missed]


def lines(document: dict[str, Any]) -> list[str]:
    text = [f"{'contract':32} {'states':>7} {'wrong':>5}  settled alone, and at the most"]
    for each in document["contracts"]:
        wrong = len(each["breaches"]) + len(each["early_holds"])
        shares = f"{each['settled_alone']:6.1%} of {each['most_any_safe_rule_settles']:6.1%}"
        text.append(f"{each['contract']:32} {each['states']:7} {wrong:5}  {shares}")
    if document["mutants"]:
        caught = [each for each in document["mutants"] if each["found_by"]]
        text += ["", f"{len(caught)} of {len(document['mutants'])} seeded mistakes found"]
        text += [f"  {each['mistake']}" for each in document["mutants"] if not each["found_by"]]
    return [*text, "", f"{document['cpu_seconds']} s of processor time"]
