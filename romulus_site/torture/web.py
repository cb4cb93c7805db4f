"""The console's own process, to which some events are delivered as their sender does: over HTTP.

It is the product's web server, at `/hooks/<source>/`. The database is restarted, and its sessions
are cut, under it too; whoever sends an event sends it again until it is answered 2xx.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path

import httpx
from django.conf import settings

from romulus_site import leash, parts
from romulus_site.polling import wait_until
from romulus_site.torture import answers
from romulus_site.torture.scene import FIRST_PORT, PORTS, SECRET, SOURCE, START_SECONDS, NotSetUp
from romulus_site.torture.sendings import PlannedSending

TRIES = 40
PAUSE_SECONDS = 0.25
ANSWER_SECONDS = 10.0
# Not those of the destination, which takes the first that is free from another one on.
OFFSET = 5000


class Unanswered(Exception):
    """A sender has sent an event again and again, and it was never answered 2xx."""


@dataclass(frozen=True)
class Told:
    """What a sender was told, in its last of so many tries."""

    outcome: str
    tries: int


class WebServer:
    """One process of the console."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "logs" / "web.log"
        self._port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._client = httpx.Client(timeout=ANSWER_SECONDS)

    def start(self) -> None:
        self._port = parts.free_port(FIRST_PORT + (os.getpid() + OFFSET) % PORTS)
        part = parts.console(parts.LOOPBACK, self._port)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command(part.command, signal=signal.SIGKILL),
                cwd=settings.BASE_DIR,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        if not wait_until(lambda: part.is_ready(0), START_SECONDS):
            raise NotSetUp(f"The web server did not start; see {self.log}")

    def stop(self) -> None:
        self._client.close()
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def deliver(self, sending: PlannedSending) -> Told:
        """Send an event until its receipt is answered.

        Raises:
            Unanswered: says with what it was answered last.
        """
        said = ""
        for number in range(1, TRIES + 1):
            try:
                answer = self._client.post(
                    f"http://{parts.LOOPBACK}:{self._port}/hooks/{SOURCE}/",
                    content=json.dumps(body_of(sending)),
                    headers={
                        "Content-Type": "application/json",
                        "Authorization": f"Bearer {SECRET}",
                    },
                )
            except httpx.HTTPError as error:
                said = type(error).__name__
            else:
                if answer.is_success:
                    return Told(answer.json()["outcome"], number)
                said = f"{answer.status_code} {answer.text}"
                if answer.status_code != HTTPStatus.SERVICE_UNAVAILABLE:
                    break
            time.sleep(PAUSE_SECONDS)
        raise Unanswered(f"event {sending.event_id}: {said}; see {self.log}")


def body_of(sending: PlannedSending) -> answers.Input:
    return answers.event_body(sending.run, sending.event_id, sending.type, sending.correlation)
