"""The player: `python -m romulus_site.torture`, on the stage that the command has made."""

from __future__ import annotations

import argparse
import json
import signal
import sys
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from romulus_site.torture.scene import Scene

BREACHED, INTERRUPTED = 3, 130  # exit codes
ENDING = (signal.SIGINT, signal.SIGTERM)


def main() -> int:
    import django

    django.setup()
    given = options()
    from romulus_site.torture.scene import Scene

    for number in ENDING:
        signal.signal(number, interrupt)
    try:
        scene = Scene.make()
        try:
            return play(given, scene)
        finally:
            scene.end()
    except KeyboardInterrupt:
        say("interrupted: everything that was started has been ended")
        return INTERRUPTED


def interrupt(*_: object) -> None:
    """End everything, and let nobody hurry that: half of it would be left running."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


def play(given: argparse.Namespace, scene: Scene) -> int:
    from django.conf import settings

    from romulus_site.torture import report
    from romulus_site.torture.checks import examine
    from romulus_site.torture.plan import make_plan
    from romulus_site.torture.player import Player
    from romulus_site.torture.record import read_record

    began = time.monotonic()
    lease = settings.ROMULUS_LEASE_SECONDS
    plan = make_plan(
        given.runs, given.seconds, given.seed, lease=lease, only_writes=given.only_writes
    )
    performance = Player(plan, scene, given.workers, say).play()
    destination = scene.destination.at_hand
    record = read_record(plan, performance, destination, scene.folder / "logs")
    breaches = examine(record)
    document = report.document_of(
        record,
        breaches,
        owns_server=scene.server is not None,
        seconds=time.monotonic() - began,
    )
    if given.json:
        print(json.dumps(document, indent=2))  # noqa: T201
    else:
        print("\n".join(report.lines_of(document)))  # noqa: T201
    return BREACHED if breaches else 0


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--only-writes", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
