"""What every command shares: how it answers, and how it ends.

Exit codes: 0 done, 1 refused or failed with a sentence that says why, 2 wrongly called.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.core.management import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError

from workflows.core.errors import RomulusError

REFUSED, WRONG_USE = 1, 2
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
AWAY = "The database does not answer, so nothing was done: {reason}"


class Refused(CommandError):
    """Nothing was done, and the message says why."""

    def __init__(self, message: str) -> None:
        super().__init__(message, returncode=REFUSED)


class WrongUse(CommandError):
    """The command cannot be understood; the message says what to write instead."""

    def __init__(self, message: str) -> None:
        super().__init__(message, returncode=WRONG_USE)


class ConsoleCommand(BaseCommand):
    """A command for people and scripts: lines for the former, JSON for the latter."""

    requires_system_checks = ()

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--json", action="store_true", help="answer as JSON")

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self.perform(argparse.Namespace(**options))
        except (RomulusError, PermissionDenied) as error:
            raise Refused(str(error)) from error
        except (OperationalError, InterfaceError) as error:
            raise Refused(AWAY.format(reason=str(error).strip())) from error

    def perform(self, given: argparse.Namespace) -> None:
        """Do what the command is for; raises `Refused` or an error of the domain."""
        raise NotImplementedError

    def answer(self, given: argparse.Namespace, document: Any, lines: Iterable[str]) -> None:
        """Write `document` as JSON if that was asked for, else the lines."""
        if given.json:
            lines = [json.dumps(document, indent=2, default=str, ensure_ascii=False)]
        else:
            # What a provider or a person wrote must not steer the terminal.
            lines = (CONTROL.sub(" ", line) for line in lines)
        try:
            for line in lines:
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:
            # Whoever reads, such as `head`, has read enough. Nowhere is where the rest goes, for
            # Python flushes once more when it ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.stdout.fileno())


def an_id(text: str) -> UUID:
    """An argument that is an ID."""
    try:
        return UUID(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no ID") from None


def positive(text: str) -> int:
    """An argument that is a number from 1."""
    try:
        number = int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no number") from None
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is fewer than one")
    return number
