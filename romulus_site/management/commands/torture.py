"""`manage.py torture`: real workers, struck in every way, and then every promise row by row.

What is done, and how, is in `romulus_site.torture`; progress goes to standard error.
"""

from __future__ import annotations

import argparse
import random
import signal
import subprocess
import sys
from collections.abc import Sequence

from django.conf import settings

from romulus_site import leash
from romulus_site.torture.stage import Stage, stage
from workflows.management.base import ConsoleCommand, Refused, positive

BREACHED, INTERRUPTED = 3, 130
LEASE_SECONDS = 3.0
END_SECONDS = 60.0


class Command(ConsoleCommand):
    help = "Strike workers, database, broker and destination at work, then check every promise."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        parser.add_argument("--runs", type=positive, default=100, help="runs to start")
        parser.add_argument(
            "--seconds", type=positive, default=30, help="for how long blows fall; peace follows"
        )
        parser.add_argument("--seed", type=int, help="the same seed makes the same plan")
        parser.add_argument("--workers", type=positive, default=3, help="worker processes")
        parser.add_argument(
            "--only-writes",
            action="store_true",
            help="runs that write to a destination alone: more operations in the same time",
        )
        parser.add_argument(
            "--keep", action="store_true", help="leave logs and data, to be looked at"
        )

    def perform(self, given: argparse.Namespace) -> None:
        seed = random.randrange(1_000_000) if given.seed is None else given.seed  # noqa: S311
        self.say(f"torture of {given.runs} runs for {given.seconds} s, seed {seed}")
        arguments = [
            *("--runs", str(given.runs)),
            *("--seconds", str(given.seconds)),
            *("--seed", str(seed)),
            *("--workers", str(given.workers)),
            *(["--only-writes"] if given.only_writes else []),
            *(["--json"] if given.json else []),
        ]
        with stage(lease=LEASE_SECONDS, keep=given.keep) as made:
            code = played(made, arguments)
            # A breach is looked at in its rows and logs; on a server that is not ours, only its
            # logs stay unless it was asked for more.
            made.keep = made.keep or (code == BREACHED and settings.ROMULUS_EMBEDDED)
        for note in made.notes:
            self.say(note)
        if code == INTERRUPTED:
            raise SystemExit(INTERRUPTED)
        if code == BREACHED:
            raise Refused(f"Promises are broken; see above. Again: --seed {seed}")
        if code != 0:
            raise Refused(f"The torture did not come to its end (exit code {code}).")

    def say(self, text: str) -> None:
        self.stderr.write(text, style_func=str)
        self.stderr.flush()


def played(made: Stage, arguments: Sequence[str]) -> int:
    """Run the player on the stage; return its exit code. A Ctrl-C is for the player, who ends
    everything that it has started."""
    command = [sys.executable, "-m", "romulus_site.torture", *arguments]
    player = subprocess.Popen(  # noqa: S603 (our own command line)
        leash.command(command, signal=signal.SIGTERM),
        cwd=settings.BASE_DIR,
        env=made.environment,
        stdin=subprocess.DEVNULL,
    )
    # A closed terminal and SIGTERM end it as a Ctrl-C does, which the player gets by itself.
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
            signal.signal(number, lambda *_: player.terminate())
    try:
        return player.wait()
    except KeyboardInterrupt:
        return player.wait(END_SECONDS)
