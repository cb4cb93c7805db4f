"""What every test may use: the database of the run, and a destination in a process of its own.

Plain tests roll back. A test that needs real commits (other connections, other processes) takes
`committed_db`: a database of its own, cloned from the migrated one and dropped after, since the
ledger's tables refuse to be emptied.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.staticfiles.handlers import StaticFilesHandler
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections
from django.test.testcases import LiveServerThread
from django.test.utils import setup_databases, teardown_databases
from hypothesis import HealthCheck
from hypothesis import settings as examples

from romulus_site.embedded import EmbeddedPostgres
from tests.databases import cloned, template
from tests.destination import RunningDestination, running_destination
from workflows.services import known_sources, pauses

# Most tests wait more than they compute. Each process has a server of its own, and many start
# workers, so not too many.
PROCESSES_PER_CORE, MOST_PROCESSES = 1.5, 8
# Where several processes share the tests, one of them runs all of a group, so that no two of those
# run at the same time: they need the machine, or share what is made once. By how a path begins.
GROUPS = {
    "tests/acceptance/test_a15": "machine",
    "tests/acceptance/test_torture": "machine",
    "tests/acceptance/test_up": "machine",
    "tests/acceptance/test_rehearse": "machine",
    "tests/acceptance/": "workers",
    "tests/lanes/": "counterparts",
    "tests/console/test_browser": "browser",
    "tests/integration/test_bench": "bench",
    "tests/integration/torture/": "torture",
}
# Generated examples fail for what they show, and never for how long the machine took over them.
examples.register_profile(
    "any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
examples.load_profile("any machine")

# Thousands of tests are read, and none of them is waste: it is not looked for until all are there,
# and not among them after.
gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    gc.freeze()
    gc.enable()


RACES = 60  # enough that each order comes about, few enough for every day


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--races",
        type=int,
        default=RACES,
        help=f"rounds of each race between an event and what it meets ({RACES}); try thousands",
    )


@pytest.fixture
def races(request: pytest.FixtureRequest) -> int:
    """How many rounds a race has."""
    rounds: int = request.config.getoption("races")
    return rounds


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    return min(round(PROCESSES_PER_CORE * (os.cpu_count() or 1)), MOST_PROCESSES)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    from xdist.scheduler import LoadScopeScheduling

    class InGroups(LoadScopeScheduling):
        """Its own groups, because those by mark are lost between xdist 3.8 and pytest 9.2."""

        def _split_scope(self, nodeid: str) -> str:
            return next((name for path, name in GROUPS.items() if nodeid.startswith(path)), nodeid)

    return InGroups(config, log)


@pytest.fixture(autouse=True)
def forgotten_pauses() -> None:
    """What an earlier test has paused, and its sources, are not remembered."""
    pauses.forget()
    known_sources.forget()


@pytest.fixture(scope="session")
def database_server() -> Iterator[EmbeddedPostgres | None]:
    """The embedded PostgreSQL of the run; None when `DATABASE_URL` names another server."""
    if not settings.ROMULUS_EMBEDDED:
        yield None
        return
    server = EmbeddedPostgres(settings.ROMULUS_DATA, durable=False)
    with server:
        yield server


@pytest.fixture(scope="session")
def django_db_setup(
    database_server: None,
    django_test_environment: None,
    django_db_modify_db_settings: None,
    django_db_blocker: Any,
) -> Iterator[None]:
    """Make the migrated test database, also when only tests that clone it are run."""
    kept = ExitStack()
    with django_db_blocker.unblock():
        made = setup_databases(verbosity=0, interactive=False)
        kept.enter_context(template(connection))
    yield
    with django_db_blocker.unblock():
        kept.close()
        teardown_databases(made, verbosity=0)


@pytest.fixture
def committed_db(django_db_setup: None, django_db_blocker: Any) -> Iterator[str]:
    """Point this process at a migrated database of the test's own; gives its `DATABASE_URL`."""
    with django_db_blocker.unblock(), cloned(connection) as url:
        yield url
        connections.close_all()


@pytest.fixture
def live_console(committed_db: str) -> Iterator[str]:
    """The console as a real HTTP server over `committed_db`; gives its address."""
    with console_server(StaticFilesHandler) as url:
        yield url


@contextmanager
def console_server(files: Callable[[WSGIHandler], WSGIHandler]) -> Iterator[str]:
    """A real HTTP server of the console, with `files` around it; gives its address.

    Django's own live server empties every table after a test, which the ledger's refuse.
    """
    server = LiveServerThread("127.0.0.1", files)
    server.daemon = True
    server.start()
    server.is_ready.wait()
    if server.error:
        raise server.error
    yield f"http://127.0.0.1:{server.port}"
    server.terminate()


@pytest.fixture(scope="session")
def destination_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDestination]:
    folder: Path = tmp_path_factory.mktemp("destination")
    with running_destination(folder) as running:
        yield running


@pytest.fixture
def destination(destination_process: RunningDestination) -> RunningDestination:
    """A destination that remembers nothing of earlier tests."""
    destination_process.client.reset()
    return destination_process
