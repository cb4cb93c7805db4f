"""`manage.py start`: start a run, once for each start key."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User

from workflows.management.base import ConsoleCommand, Refused, WrongUse, positive
from workflows.models import Tenant
from workflows.services.runs import start


class Command(ConsoleCommand):
    help = "Start a run and print its ID. The input is checked before anything is stored."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("workflow")
        parser.add_argument(
            "--input",
            default="{}",
            help="its input as JSON; @FILE reads a file, - reads standard input",
        )
        parser.add_argument("--tenant", help="slug; needed when there is more than one")
        parser.add_argument("--key", help="start key: starting twice with it starts once")
        parser.add_argument("--workflow-version", type=positive, help="the latest by default")
        parser.add_argument(
            "--label", action="append", default=[], metavar="NAME=VALUE", help="any number of"
        )

        parser.add_argument(
            "--by", metavar="USERNAME", help="who starts it, and decides nothing of it then"
        )

    def perform(self, given: argparse.Namespace) -> None:
        run = start(
            given.workflow,
            read_input(given.input),
            tenant=tenant_of(given.tenant),
            version=given.workflow_version,
            start_key=given.key,
            labels=dict(label(text) for text in given.label),
            by=account(given.by) if given.by else None,
        )
        document = {"id": run.pk, "workflow": run.workflow, "version": run.version}
        self.answer(given, document | {"state": run.state, "step": run.step}, [str(run.pk)])


def account(name: str) -> User:
    found = User.objects.filter(username=name, is_active=True).first()
    if found is None:
        raise Refused(f"there is no active account {name!r}")
    return found


def read_input(text: str) -> Any:
    """Return the JSON of an argument, a file or standard input; says where it is wrong."""
    source = "the input"
    if text == "-":
        text, source = sys.stdin.read(), "standard input"
    elif text.startswith("@"):
        source = text[1:]
        try:
            text = Path(source).read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise WrongUse(f"{source} cannot be read: {error}") from error
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise WrongUse(f"{source} is no JSON: {error.msg} at {place}") from error


def tenant_of(slug: str | None) -> Tenant:
    """The tenant that is named, or the only one there is."""
    known = {tenant.slug: tenant for tenant in Tenant.objects.order_by("slug")}
    if slug is None and len(known) == 1:
        return next(iter(known.values()))
    if slug in known:
        return known[slug]
    if not known:
        raise Refused("there is no tenant yet: add one in the admin")
    names = ", ".join(known)
    if slug is None:
        raise WrongUse(f"say whose run it is with --tenant; there are: {names}")
    raise Refused(f"there is no tenant {slug!r}; there are: {names}")


def label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not (name and separator):
        raise WrongUse(f"--label {text!r}: write NAME=VALUE")
    return name, value
