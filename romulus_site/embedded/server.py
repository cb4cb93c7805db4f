"""The server process: started, watched for its first answer, stopped."""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from romulus_site import folder_lock
from romulus_site.embedded import leftovers
from romulus_site.embedded.cluster import ENVIRONMENT, NOT_OURS, Cluster, prepare
from romulus_site.embedded.errors import AlreadyRunning, EmbeddedError
from romulus_site.embedded.settings import DATABASE, PORT, USER, connection_string, socket_folder
from romulus_site.polling import wait_until

# A worker takes one for each of its threads and some ten for itself and its messages.
MAX_CONNECTIONS = 300
# Recovery after a crash reads at most what was written since the last checkpoint.
START_SECONDS = 60.0
# How much of the server's own words an error shows.
LAST_LINES = 8

# For tests: what was committed survives the end of the server, but not that of the machine.
# A statement that is refused, such as a form's that was sent twice, stands in no log with what it
# was to keep (promise P9).
SAYS_NO_VALUES = ("log_min_error_statement=panic", "log_error_verbosity=terse")
NOT_DURABLE = ("fsync=off", "full_page_writes=off", "synchronous_commit=off")


class EmbeddedPostgres:
    """The server of a data folder, in the hands of its one owner.

    Start it from the main thread: it ends when the thread that started it ends (see `leash`).
    `durable=False` is for tests.
    """

    def __init__(self, data: Path, *, durable: bool = True) -> None:
        self.data = data.resolve()
        self.sockets = socket_folder(self.data)
        self.log = self.data / "logs" / "postgresql.log"
        self._durable = durable
        self._lock: int | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    def dsn(self, database: str = DATABASE) -> str:
        return connection_string(host=self.sockets, port=PORT, user=USER, dbname=database)

    def start(self) -> None:
        """Start the server, also again after it died, and return when it answers.

        Raises AlreadyRunning when another process owns it, EmbeddedError when it cannot start.
        """
        if self.is_running:
            return
        try:
            self._take_folder()
            cluster = prepare(self.data, self.sockets, durable=self._durable)
            leftovers.clear(cluster.folder)
            self._process = self._launch(cluster)
            self._wait_for_answer(self._process)
            self._create_database()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End the server, cleanly unless that takes too long, and give up the folder."""
        if self._process is not None:
            end(self._process)
            self._process = None
        if self.sockets.parent != self.data:
            with suppress(OSError):  # not there, or still in use by the next owner
                self.sockets.rmdir()
        if self._lock is not None:
            folder_lock.release(self._lock)
            self._lock = None

    def _take_folder(self) -> None:
        if self._lock is not None:
            return
        try:
            self.data.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.log.parent.mkdir(mode=0o700, exist_ok=True)
            self._lock = folder_lock.acquire(self.data / "postgresql.lock")
        except folder_lock.Held as error:
            raise AlreadyRunning(
                f"Process {error.holder} already runs the PostgreSQL of {self.data}."
            ) from error
        except PermissionError as error:
            raise EmbeddedError(NOT_OURS.format(folder=self.data)) from error

    def _launch(self, cluster: Cluster) -> subprocess.Popen[bytes]:
        command = cluster.command(cluster.binaries.postgres, "-D", cluster.folder)
        for setting in self._configuration():
            command += ["-c", setting]
        with self.log.open("ab") as log:
            return subprocess.Popen(  # noqa: S603 (our own command line)
                command,
                env=ENVIRONMENT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A Ctrl-C in the terminal is for the owner, who ends the server last.
                start_new_session=True,
            )

    def _configuration(self) -> tuple[str, ...]:
        return (
            f"unix_socket_directories={self.sockets}",
            "unix_socket_permissions=0700",
            "listen_addresses=",
            f"port={PORT}",
            f"max_connections={MAX_CONNECTIONS}",
            "timezone=UTC",
            "log_timezone=UTC",
            *SAYS_NO_VALUES,
            *(() if self._durable else NOT_DURABLE),
        )

    def _wait_for_answer(self, process: subprocess.Popen[bytes]) -> None:
        """Wait for a real connection: the lock file of a server says nothing about its health."""
        wait_until(lambda: process.poll() is not None or self._answers(), START_SECONDS)
        if not self._answers():
            lines = self.log.read_text(errors="replace").splitlines()[-LAST_LINES:]
            raise EmbeddedError("PostgreSQL did not start; its last words:\n" + "\n".join(lines))

    def _answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
        except psycopg.OperationalError:
            return False
        return True

    def _create_database(self) -> None:
        import psycopg

        with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
            known = connection.execute("SELECT FROM pg_database WHERE datname = %s", [DATABASE])
            if known.fetchone() is None:
                connection.execute(f"CREATE DATABASE {DATABASE}")


def end(process: subprocess.Popen[bytes]) -> None:
    for number, limit in leftovers.STOP_SIGNALS:
        process.send_signal(number)
        try:
            process.wait(limit)
            return
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()
