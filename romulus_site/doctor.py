"""What `manage.py doctor` looks at: whether this installation can work, and what would mend it.

Each examination asks one thing and tells what it found in a sentence. Nothing is changed, but for
one object in the storage of outputs, which is written, read and removed.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from django.conf import settings
from django.core.files.base import ContentFile
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor
from django.utils import timezone

from reconciliation.access import stops_in_force
from reconciliation.models import Provider
from reconciliation.selectors.audit_page import latest_check
from reconciliation.selectors.contract import is_overdue
from reconciliation.services.providers import missing_of
from romulus_site.health import ask_broker
from romulus_site.poolers import why_not
from workflows import storage
from workflows.models import Run
from workflows.selectors import live_workers
from workflows.services.clock import database_now

# Between this machine and the database. Nothing is decided by this machine's clock, but people
# compare its logs with the record.
CLOCKS_APART = timedelta(seconds=5)
CHAIN_CHECKED_WITHIN = timedelta(days=2)
MOST = 200  # providers and versions that are looked at


class Verdict(StrEnum):
    FINE = "fine"
    NOTE = "note"  # it works, and somebody should know
    WRONG = "wrong"


@dataclass(frozen=True)
class Finding:
    """What an examination found; `helps` is empty where nothing is to be mended."""

    part: str
    verdict: Verdict
    text: str
    helps: str = ""


def fine(part: str, text: str) -> Finding:
    return Finding(part, Verdict.FINE, text)


def note(part: str, text: str, helps: str) -> Finding:
    return Finding(part, Verdict.NOTE, text, helps)


def wrong(part: str, text: str, helps: str) -> Finding:
    return Finding(part, Verdict.WRONG, text, helps)


def examined() -> Iterator[Finding]:
    """Examine everything; of what needs the database nothing while it is away."""
    yield from settings_found()
    try:
        with connection.cursor() as cursor:
            cursor.execute("SHOW server_version")
            (version,) = cursor.fetchone()
    except Error as error:
        helps = "Start it, or set DATABASE_URL to where it is. Everything else waits for it."
        yield wrong("database", f"It does not answer: {str(error).strip()}", helps)
        return
    yield database(version)
    pending = migrations()
    yield pending
    if pending.verdict is Verdict.WRONG:
        return
    for examination in EXAMINATIONS:
        yield from examination()


# --- this machine -----------------------------------------------------------------------------


def settings_found() -> Iterator[Finding]:
    if settings.DEBUG:
        helps = "Unset DEBUG: error pages show what runs were given to whoever sees them."
        yield wrong("settings", "DEBUG is on.", helps)
    elif not settings.ROMULUS_EMBEDDED and not settings.ROMULUS_TLS:
        helps = "Set ROMULUS_TLS=1 where TLS is ended in front of the console."
        yield note("settings", "Cookies may travel without TLS.", helps)
    else:
        yield fine("settings", "As they should be.")


def database(version: str) -> Finding:
    apart = abs(timezone.now() - database_now())
    if apart > CLOCKS_APART:
        return note(
            "database",
            f"It answers, and its clock is {apart.total_seconds():.0f} s from this machine's.",
            "Set the clocks by NTP. Deadlines and leases go by the database's alone.",
        )
    return fine("database", f"PostgreSQL {version} answers.")


def migrations() -> Finding:
    executor = MigrationExecutor(connection)
    plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if plan:
        names = ", ".join(str(migration) for migration, _ in plan[:3])
        helps = "Run manage.py migrate before anything of this version works."
        return wrong("migrations", f"{len(plan)} are not applied: {names}…", helps)
    return fine("migrations", "All are applied.")


def queues() -> Iterator[Finding]:
    problem = why_not()
    if problem:
        yield wrong("pooler", "Something stands between that workers cannot work with.", problem)
    if ask_broker():
        yield fine("broker", "It answers.")
    else:
        helps = "Start it, or set BROKER_URL. Nothing is lost meanwhile; runs wait for a sweep."
        yield wrong("broker", "It does not answer.", helps)


def outputs() -> Iterator[Finding]:
    """Write, read and remove an object as large outputs are."""
    name, written = f"doctor-{secrets.token_hex(8)}", secrets.token_bytes(64)
    place = storage.outputs()
    try:
        kept = place.save(name, ContentFile(written))
        with place.open(kept) as file:
            read = file.read()
        place.delete(kept)
    except Exception as error:  # noqa: BLE001 (each storage has its own errors)
        helps = f"See to the {storage.kind()}, and to ROMULUS_OUTPUTS_BACKEND and its OPTIONS."
        yield wrong("outputs", f"Their storage does not work ({type(error).__name__}).", helps)
        return
    if read != written:
        helps = "Do not use it: steps that leave large outputs would be held."
        yield wrong("outputs", "Their storage gives back something else than it took.", helps)
    else:
        yield fine("outputs", "Their storage takes, gives back and removes an object.")


# --- who works --------------------------------------------------------------------------------


def workers() -> Iterator[Finding]:
    alive = list(live_workers())
    if not alive:
        yield wrong("workers", "None is alive: runs wait.", "Start some: celery -A romulus_site …")
        return
    yield fine("workers", f"{len(alive)} alive.")
    has = {(name, version) for worker in alive for name, version in worker.workflows}
    unfinished = Run.objects.filter(finished_at=None).values_list("workflow", "version")
    for name, version in list(unfinished.distinct().order_by("workflow", "version")[:MOST]):
        if (name, version) not in has:
            yield wrong(
                "workers",
                f"None has {name} version {version}, and runs of it are not finished.",
                f"Start workers that have it, or move the runs: manage.py migrate_runs {name}",
            )


# --- whom we write to -------------------------------------------------------------------------


def providers() -> Iterator[Finding]:
    rows = Provider.objects.filter(stands_in_for=None).select_related(
        "contract_version", "default_queue"
    )
    for provider in rows.order_by("slug")[:MOST]:
        yield provider_found(provider)


def provider_found(provider: Provider) -> Finding:
    part = f"provider {provider.slug}"
    missing = missing_of(provider)
    contract = provider.contract_version.contract if provider.contract_version else None
    if missing:
        return wrong(part, f"Nothing is sent. It lacks {'; '.join(missing)}.", "Set it up.")
    if provider.contradicted_at is not None:
        helps = "Review its contract, and say so on its page in the console."
        return wrong(part, f"It broke its contract: {provider.contradiction}.", helps)
    if contract is not None and is_overdue(contract, database_now()):
        helps = "Read the provider's pages again, and add a version."
        return note(part, "The review of its contract is overdue.", helps)
    if contract is not None and not trusted(provider):
        helps = f"Rehearse it: manage.py rehearse {provider.slug}"
        return note(part, "What its contract claims was never shown, so it is not used.", helps)
    return fine(part, "Ready.")


def trusted(provider: Provider) -> bool:
    """Whether each claim of the contract is used that could be."""
    assert provider.contract_version is not None
    contract = provider.contract_version.contract
    replays = contract.replay is None or bool(provider.replay_trust)
    return replays and (contract.look_up is None or bool(provider.look_up_trust))


def dispatch() -> Iterator[Finding]:
    stops = list(stops_in_force().order_by("at")[:MOST])
    for stop in stops:
        helps = "Turn it on again at /dispatch/ when that is over."
        said = f"{stop.state} for {stop.covers} since {stop.at:%Y-%m-%d %H:%M} UTC, by "
        yield note("dispatch", f"{said}{stop.by_name}: {stop.reason}", helps)
    if not stops:
        yield fine("dispatch", "On.")


def record() -> Iterator[Finding]:
    check = latest_check()
    if check is None or database_now() - check.at > CHAIN_CHECKED_WITHIN:
        helps = "Run manage.py check_audit each night, and keep its last line elsewhere."
        yield note("audit record", "Nobody has checked lately that it is whole.", helps)
    elif check.broken is not None:
        helps = "Compare the record with a copy from before; trust nothing after that entry."
        yield wrong("audit record", f"Entry {check.broken} was changed or lacks one.", helps)
    else:
        yield fine("audit record", f"Whole up to entry {check.upto}.")


EXAMINATIONS: tuple[Callable[[], Iterator[Finding]], ...] = (
    queues,
    outputs,
    workers,
    providers,
    dispatch,
    record,
)
