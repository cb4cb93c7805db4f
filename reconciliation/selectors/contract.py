"""What the provider documents, and how much of its protection is left."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciliation.core.contracts import Contract
from reconciliation.pages import ContractCard, Window
from reconciliation.selectors.case import Case
from reconciliation.selectors.words import clock, window_of
from workflows.pages import Fact
from workflows.selectors.words import counted


def contract_card(case: Case, runbook_url: str = "") -> ContractCard:
    contract, window = case.contract, window_of(case.operation, case.now)
    return ContractCard(
        version=f"{contract.slug} v{contract.version}",
        window=window,
        before="A send with the same key takes effect once at most." if window.relied_on else "",
        after="A send with the same key could happen a second time." if window.relied_on else "",
        # Without a hold nobody is asked to do anything: Romulus keeps to the contract by itself.
        advice="" if case.hold is None else advice(case, contract, window),
        facts=tuple(facts_of(case, contract)),
        runbook_url=runbook_url,
        reviewed=reviewed(contract) + (OVERDUE if is_overdue(contract, case.now) else ""),
    )


def advice(case: Case, contract: Contract, window: Window) -> str:
    """One sentence, where the window is closing, over, missing or not relied on."""
    if contract.replay is not None and case.facts.contradicted:
        return f"Do not rely on the key: {case.provider} was seen to break its contract."
    if contract.replay is not None and not case.facts.replay_trusted:
        return "Do not rely on the key: nobody has shown here that it guards a second send."
    match window.state:
        case "closing" if window.ends_at is not None:
            ends = clock(window.ends_at, case.now.tzinfo)
            return f"Decide before {ends}: after that a send could happen twice."
        case "ended":
            return f"Do not send. The key may be gone: look for the result at {case.provider}."
        case "none" if contract.look_up is not None:
            return "Ask the provider before anything is sent again."
        case "none":
            return f"Only someone who can see the result at {case.provider} can tell."
        case _:
            return ""


def facts_of(case: Case, contract: Contract) -> list[Fact]:
    provider = case.operation.provider
    facts = [
        Fact("Replay", replay_text(contract)),
        Fact("Look-up", look_up_text(contract)),
        Fact("Result", "checked afterwards" if contract.verifies else "not checked"),
    ]
    if contract.irreversible:
        facts.append(Fact("Undo", "not possible"))
    if contract.replay is not None:
        facts.append(Fact("Replay trusted", provider.replay_trust or "no: never shown here"))
    if contract.look_up is not None:
        facts.append(Fact("Look-up trusted", provider.look_up_trust or "no: never shown here"))
    if provider.contradicted_at is not None:
        facts.append(Fact("Contradicted", clock(provider.contradicted_at, case.now.tzinfo)))
    return facts


def replay_text(contract: Contract) -> str:
    sends = counted(contract.budget.transmissions, "send")
    return f"same key; {sends} at most by itself" if contract.replay else "none: it keeps no key"


def look_up_text(contract: Contract) -> str:
    rule = contract.look_up
    if rule is None:
        return "none"
    return f"by {rule.marker}, up to {rule.visibility_lag_seconds} s late"


OVERDUE = ". That review is overdue: read the provider's pages again."


def is_overdue(contract: Contract, now: datetime) -> bool:
    """Whether the contract was to be reviewed again before today, by UTC."""
    return contract.is_overdue(now.astimezone(UTC).date())


def reviewed(contract: Contract) -> str:
    on, again = contract.reviewed_on, contract.review_again_on
    return f"Reviewed {on.day} {on:%b %Y}, again by {again.day} {again:%b %Y}"
