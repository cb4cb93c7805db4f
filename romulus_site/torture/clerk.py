"""The process that does what people do: it starts, cancels, pauses, decides and purges; and it
takes the events that are sent.

A process of its own, so that it can be killed before and after each of its commits. Whoever asks it
asks again until there is an answer: everything that it does may be asked for twice.

Run as a module it is the clerk; `Clerk` is how the player speaks to it: in turn, a line of JSON.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from operator import itemgetter
from pathlib import Path
from typing import Any, TextIO

from romulus_site import leash

Message = dict[str, Any]
TRIES = 8


class Silent(Exception):
    """The clerk has no answer, however often it is asked."""


class Clerk:
    """The clerk, as the player sees it.

    Attributes:
        deaths: the failpoints at which it has died.
        slowest: what took longest, and for how many seconds.
    """

    def __init__(self, folder: Path) -> None:
        self.slowest = ("nothing", 0.0)
        self.log = folder / "logs" / "clerk.log"
        self.deaths: list[str] = []
        self._failpoint = ""
        self._process: subprocess.Popen[str] | None = None

    def start(self) -> None:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 (our own command line)
                leash.command([sys.executable, "-m", __name__], signal=signal.SIGKILL),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def arm(self, failpoint: str) -> None:
        """Let it die when it next comes to `failpoint`, if one is named."""
        self._failpoint = failpoint
        self._told({"arm": failpoint})

    def ask(self, do: str, **given: Any) -> Message:
        """Have it `do` something and return its answer, however often it dies over it.

        The answer says in which try it came.

        Raises:
            Silent: it failed again and again; says how.
        """
        answer: Message = {}
        for number in range(1, TRIES + 1):
            began = time.monotonic()
            answer = self._told({"do": do, **given})
            self.slowest = max(self.slowest, (do, time.monotonic() - began), key=itemgetter(1))
            if answer.pop("died", False):
                self.deaths.append(self._failpoint)
            elif "error" not in answer:
                return answer | {"tries": number}
        raise Silent(f"the clerk could not {do}: {answer.get('error', '')}; see {self.log}")

    def _told(self, message: Message) -> Message:
        process = self._process
        assert process is not None, "it was started"
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps(message) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            raise Silent(f"the clerk has ended; see {self.log}")
        answer: Message = json.loads(line)
        return answer


# --- in the clerk's own process ---------------------------------------------------------------


class Hand:
    """A forked process that does what is asked, and may die over it.

    Its parent has everything loaded and nothing open, so that the next one is there at once.
    """

    def __init__(self, failpoint: str) -> None:
        asked, ask = os.pipe()
        told, tell = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(ask)
            os.close(told)
            serve(os.fdopen(asked), os.fdopen(tell, "w"), failpoint)
            os._exit(0)
        os.close(asked)
        os.close(tell)
        self._ask, self._told = os.fdopen(ask, "w"), os.fdopen(told)

    def ask(self, line: str) -> str:
        """Return its answer; nothing when it has died."""
        self._ask.write(line)
        self._ask.flush()
        return self._told.readline()

    def dismiss(self) -> None:
        """It ends when nothing more can be asked; or it has ended already."""
        self._ask.close()
        self._told.close()
        os.waitpid(self._pid, 0)


def main() -> None:
    import django

    django.setup()
    from romulus_site.torture import desk  # noqa: F401 (loaded before it is forked)

    hand = Hand("")
    for line in sys.stdin:
        message = json.loads(line)
        if "arm" in message:
            hand.dismiss()
            hand = Hand(message["arm"])
            answer = json.dumps({"outcome": "armed"})
        else:
            answer = hand.ask(line).strip()
        if not answer:
            hand.dismiss()
            hand = Hand("")
            answer = json.dumps({"died": True})
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()
    hand.dismiss()


def serve(asked: TextIO, tell: TextIO, failpoint: str) -> None:
    from django.conf import settings

    settings.ROMULUS_FAILPOINTS = [failpoint] if failpoint else []
    for line in asked:
        tell.write(json.dumps(served(json.loads(line)), default=str) + "\n")
        tell.flush()


def served(message: Message) -> Message:
    from django.db import DatabaseError, InterfaceError, close_old_connections

    from romulus_site.torture import desk

    # What was cut while nothing was asked is noticed here.
    close_old_connections()
    try:
        return desk.DUTIES[message.pop("do")](**message)
    except (DatabaseError, InterfaceError) as error:
        return {"error": f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
