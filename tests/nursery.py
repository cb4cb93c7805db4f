"""Workers at the price of a fork: this process has loaded what each of them needs.

Run as a program, it makes a worker for each request of its starter. What depends on settings is not
loaded here: a worker has an environment of its own, and sets Django up as `python -m celery` does.
There is one thread and no connection, so that forking is safe. The tests of `up`, `torture` and
`bench` start theirs by the command that people use.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import random
import signal
import sys
from typing import Any

# Without settings, and slow to load.
LIBRARIES = (
    *("celery.bin.celery", "celery.apps.worker", "celery.worker.consumer", "celery.fixups.django"),
    *("cryptography.fernet", "cryptography.x509", "django.core.mail", "django.db.models"),
    *("django.core.management", "django.forms", "django.template.loader", "django.urls"),
    *("django.contrib.admin", "django.db.backends.postgresql.base", "django.views.generic"),
    *("httpcore", "httpx", "jmespath", "jsonschema", "kombu.transport.pgmq", "kombu.pools"),
    *("psycopg_pool", "pydantic", "requests", "structlog", "yaml"),
    # Ours that ask for no setting before they are used.
    *("reconciliation.adapters.registry", "reconciliation.decision_pages", "reconciliation.pages"),
    *("reconciliation.queue_pages", "romulus_site.embedded", "workflows.pages"),
)
PURE = ("workflows.core", "reconciliation.core")


def load() -> None:
    for name in LIBRARIES:
        importlib.import_module(name)
    for name in PURE:
        package = importlib.import_module(name)
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(found.name)
    # No worker looks through all of it for what could be thrown away.
    gc.freeze()


def main() -> None:
    load()
    for line in sys.stdin:
        wanted: dict[str, Any] = json.loads(line)
        if "ended" in wanted:
            said = ended(wanted["ended"])
        else:
            said = os.fork()
            if said == 0:
                become_worker(**wanted)
                return
        sys.stdout.write(f"{json.dumps(said)}\n")
        sys.stdout.flush()


def ended(pid: int) -> int | None:
    """The exit code of a worker, as `Popen.returncode` has it; None while it lives."""
    found, status = os.waitpid(pid, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


def become_worker(arguments: list[str], environment: dict[str, str], log: str) -> None:
    nursery = os.getppid()
    os.setsid()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number, file in enumerate((nothing, output, output)):
        os.dup2(file, number)
    os.environ.clear()
    os.environ.update(environment)
    random.seed()
    from romulus_site import leash

    leash.die_with(nursery, signal.SIGKILL)
    from celery.__main__ import main as celery

    sys.argv = ["celery", *arguments]
    celery()


if __name__ == "__main__":
    main()
