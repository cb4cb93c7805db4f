"""`manage.py up`: everything on one machine, until Ctrl-C.

Starts the embedded PostgreSQL, the schema, the first accounts, the rehearsal destination, the
console and the workers, then the demonstration runs; watches all of them; ends them in the opposite
order. What was going on when it ended, however it ended, goes on with the next `up`.
"""

from __future__ import annotations

import argparse
import errno
import json
import logging
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
from django.conf import settings
from django.core.management import BaseCommand
from django.db import InterfaceError, OperationalError, connections

from romulus_site import folder_lock, parts
from romulus_site.embedded import EmbeddedError
from romulus_site.polling import wait_until
from romulus_site.processes import DidNotStart
from romulus_site.progress import Progress
from romulus_site.system import System, Wanted

WATCH_SECONDS = 1.0
# The console of a supervisor that was killed gives up its port within a second.
PORT_SECONDS = 3.0
SETTLE_SECONDS = 120.0
INTERRUPTED = 130  # as a shell reports a program that was ended by Ctrl-C

# What is raised here when a part has died and is being started again.
AWAY = (OperationalError, InterfaceError, httpx.TransportError)

ALREADY_UP = "Romulus already runs in {data} (process {holder}). End it there with Ctrl-C first."
PORT_IN_USE = (
    "Port {port} is in use by another program. "
    'Choose another one, for example: make up ARGS="--port {other}"'
)
CANNOT_LISTEN = "The console cannot listen on {host}, port {port}: {reason}."
NO_DEMO_TO_SETTLE = "--until-settled waits for the demonstration runs: leave out --no-demo."
JSON_WITHOUT_END = "--json is written at the end of --until-settled: give both."
NOT_SETTLED = "After {seconds:.0f} s some of these runs are neither finished nor held."
NO_FOLDER = "There is no folder {folder} to write the result to."

WELCOME = """
Romulus is up:  http://{host}:{port}/
{accounts}
Logs are in {logs}. Ctrl-C ends everything; the next `make up` goes on where it ended.
"""
WHAT_TO_LOOK_AT = """
What to look at, while three demonstration runs go on:
  http://{host}:{port}/review/  a ticket: its write was sent, the answer is lost, a person decides
  http://{host}:{port}/runs/    a machine: the answer is lost too, and a look-up finds what it made
                                a refund: its worker is killed, another one finishes; one refund
"""


class Refused(Exception):
    """Something that the person at the terminal can change stands in the way."""


class NotSettled(Exception):
    """The time is up and a demonstration run is neither finished nor held."""


class Command(BaseCommand):
    help = "Run everything on this machine: database, console, workers, demonstration."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("--host", default=parts.LOOPBACK, help="where the console listens")
        parser.add_argument("--port", type=port_number, default=8000, help="the console's port")
        parser.add_argument("--workers", type=positive, default=2, help="worker processes")
        parser.add_argument("--concurrency", type=positive, default=4, help="threads in each")
        parser.add_argument("--no-demo", action="store_true", help="start an empty system")
        parser.add_argument(
            "--until-settled",
            action="store_true",
            help="end by itself when every demonstration run is finished or held",
        )
        parser.add_argument(
            "--timeout",
            type=float,
            default=SETTLE_SECONDS,
            help="seconds until --until-settled gives up",
        )
        parser.add_argument("--json", type=Path, help="where --until-settled writes what came out")

    def handle(self, **options: Any) -> None:
        arguments = argparse.Namespace(**options)
        progress = Progress(self._write)
        try:
            refuse_unsuitable(arguments)
            up(arguments, progress)
        except KeyboardInterrupt:
            sys.exit(INTERRUPTED if arguments.until_settled else 0)
        except (Refused, EmbeddedError, DidNotStart, NotSettled) as error:
            progress.say(str(error))
            sys.exit(1)

    def _write(self, text: str) -> None:
        # Whoever read this may be gone, as with a closed terminal: the system still has to end.
        with suppress(OSError):
            self.stdout.write(text, ending="")
            self.stdout.flush()


def up(arguments: argparse.Namespace, progress: Progress) -> None:
    data = settings.ROMULUS_DATA.resolve()
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with folder_lock.hold(data / "up.lock"):
            refuse_taken_port(arguments.host, arguments.port)
            run(arguments, data, progress)
    except folder_lock.Held as error:
        raise Refused(ALREADY_UP.format(data=data, holder=error.holder)) from error


def run(arguments: argparse.Namespace, data: Path, progress: Progress) -> None:
    wanted = Wanted(
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        concurrency=arguments.concurrency,
        demo=not arguments.no_demo,
    )
    log_to(data / "logs" / "up.log")
    with System(wanted, data, progress) as system:
        accounts = system.start()
        if wanted.demo:
            with progress.step("Demonstration runs"):
                demo().start(system.destination_url)
        progress.say(welcome(wanted, accounts, data))
        settled = watch(system, arguments.timeout if arguments.until_settled else None)
        if arguments.until_settled:
            report(demo().result(system.destination_url), arguments.json, progress)
            if not settled:
                raise NotSettled(NOT_SETTLED.format(seconds=arguments.timeout))


def log_to(file: Path) -> None:
    """Write this process's own log there: the terminal is for what people have to know."""
    file.parent.mkdir(mode=0o700, exist_ok=True)
    stream = file.open("a")
    for handler in logging.getLogger().handlers:
        if isinstance(handler, logging.StreamHandler):
            handler.setStream(stream)


def demo() -> Any:
    """The demonstration, which imports models: only once the command runs."""
    from romulus_site import demo

    return demo


def watch(system: System, timeout: float | None) -> bool:
    """Keep `system` going: for ever without a timeout, else until its runs are settled or the time
    is up. Returns whether they are settled.
    """
    deadline = time.monotonic() + (timeout or 0)
    while True:
        system.tend()
        is_settled = tick(system)
        if timeout is not None and (is_settled or time.monotonic() > deadline):
            return is_settled
        time.sleep(WATCH_SECONDS)


def tick(system: System) -> bool:
    """Let the demonstration do its next thing; return whether it is settled."""
    if not system.wanted.demo:
        return False
    try:
        return bool(demo().tick())
    except AWAY:
        connections.close_all()
        return False


def report(result: Any, file: Path | None, progress: Progress) -> None:
    for run in result["runs"]:
        progress.say(f"{run['workflow']:<24}{run['state']}")
    if file is not None:
        file.write_text(json.dumps(result, indent=2, default=str) + "\n")
        progress.say(f"Written to {file}")


def welcome(wanted: Wanted, accounts: list[str], data: Path) -> str:
    text = WELCOME.format(
        host=parts.bracketed(wanted.host),
        port=wanted.port,
        accounts="\n".join(accounts),
        logs=data / "logs",
    )
    if wanted.demo:
        text += WHAT_TO_LOOK_AT.format(host=parts.bracketed(wanted.host), port=wanted.port)
    return text


def refuse_unsuitable(arguments: argparse.Namespace) -> None:
    if arguments.until_settled and arguments.no_demo:
        raise Refused(NO_DEMO_TO_SETTLE)
    if arguments.json and not arguments.until_settled:
        raise Refused(JSON_WITHOUT_END)
    if arguments.json and not arguments.json.resolve().parent.is_dir():
        raise Refused(NO_FOLDER.format(folder=arguments.json.parent))


def refuse_taken_port(host: str, port: int) -> None:
    wait_until(lambda: parts.why_not_free(host, port) is None, PORT_SECONDS)
    error = parts.why_not_free(host, port)
    if error is None:
        return
    if error.errno == errno.EADDRINUSE:
        raise Refused(PORT_IN_USE.format(port=port, other=port + 10))
    raise Refused(CANNOT_LISTEN.format(host=host, port=port, reason=error.strerror))


def port_number(text: str) -> int:
    if not 1 <= (port := int(text)) <= parts.LAST_PORT:
        raise argparse.ArgumentTypeError(f"{port} is not a port")
    return port


def positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{number} is fewer than one")
    return number
