"""`manage.py dispatch`: what nothing is sent of, and the switches that say so."""

from __future__ import annotations

import argparse
from typing import Any

from django.contrib.auth.models import User

from reconciliation.core.errors import InvalidDecision
from reconciliation.core.facts import Dispatch
from reconciliation.management.commands.decide import a_time
from reconciliation.models import DispatchStop, Provider
from reconciliation.services.dispatch import Scope, set_dispatch, waiting_for
from workflows.management.base import ConsoleCommand, Refused, WrongUse
from workflows.models import Tenant

COUNTED = 1000


class Command(ConsoleCommand):
    help = (
        "Show which writes are stopped, by whom and why; or turn dispatch on, to pause, or off: of "
        "everything, or of what a provider, a tenant and an action cover together."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument(
            "state", nargs="?", choices=[state.value for state in Dispatch], help="show, if omitted"
        )
        parser.add_argument("--provider", metavar="SLUG")
        parser.add_argument("--tenant", metavar="SLUG")
        parser.add_argument("--action", default="")
        parser.add_argument("--by", metavar="USERNAME", help="in whose name")
        parser.add_argument("--reason", default="", help="why, for the record")
        parser.add_argument("--until", type=a_time, help="a stop ends then, as 2026-03-10T18:00")

    def perform(self, given: argparse.Namespace) -> None:
        if given.state is None:
            stops = list(DispatchStop.objects.select_related("provider", "tenant").order_by("at"))
            lines = [line_of(stop) for stop in stops] or ["Nothing is stopped."]
            self.answer(given, [as_json(stop) for stop in stops], lines)
            return
        scope = scope_of(given)
        state = Dispatch(given.state)
        try:
            changed = set_dispatch(scope, state, user_of(given.by), given.reason, until=given.until)
        except InvalidDecision as error:
            raise Refused(f"--{error.field}: {error}") from error
        said = f"Dispatch of {scope} is {state}" + ("." if changed else " already.")
        document = {"scope": scope.subject, "state": str(state), "changed": changed}
        self.answer(given, document, [said])


def scope_of(given: argparse.Namespace) -> Scope:
    provider = Provider.objects.filter(slug=given.provider).first() if given.provider else None
    if given.provider and provider is None:
        raise Refused(f"there is no provider {given.provider!r}")
    tenant = Tenant.objects.filter(slug=given.tenant).first() if given.tenant else None
    if given.tenant and tenant is None:
        raise Refused(f"there is no tenant {given.tenant!r}")
    return Scope(provider, tenant, given.action)


def user_of(name: str | None) -> User:
    if not name:
        raise WrongUse("--by: name the account in whose name it is done")
    user = User.objects.filter(username=name, is_active=True).first()
    if user is None:
        raise Refused(f"there is no active account {name!r}")
    return user


def waiting(stop: DispatchStop) -> int:
    scope = Scope(stop.provider, stop.tenant, stop.action)
    return waiting_for(scope)[:COUNTED].count()


def as_json(stop: DispatchStop) -> dict[str, Any]:
    return {
        "covers": stop.covers,
        "provider": stop.provider.slug if stop.provider else None,
        "tenant": stop.tenant.slug if stop.tenant else None,
        "action": stop.action,
        "state": stop.state,
        "by": stop.by,
        "reason": stop.reason,
        "at": stop.at.isoformat(),
        "until": stop.until.isoformat() if stop.until else None,
        "waiting": waiting(stop),
    }


def line_of(stop: DispatchStop) -> str:
    until = f" until {stop.until:%Y-%m-%d %H:%M} UTC" if stop.until else ""
    return (
        f"{stop.state}{until}  {stop.covers}  {waiting(stop)} waiting  by {stop.by_name} since "
        f"{stop.at:%Y-%m-%d %H:%M} UTC: {stop.reason}"
    )
