"""The embedded PostgreSQL: who owns it, what survives which kill, and what it leaves alone."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from romulus_site.embedded import (
    AlreadyRunning,
    EmbeddedError,
    EmbeddedPostgres,
    broker_options,
    database_settings,
    ensure_pgmq,
)
from romulus_site.embedded.cluster import ENVIRONMENT, prepare
from romulus_site.embedded.leftovers import is_server_of, processes_in
from tests.waiting import wait_for

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="the leash is Linux's")


@pytest.fixture
def data() -> Iterator[Path]:
    # Not `tmp_path`, whose parents are closed to the account that root lets run the server.
    with tempfile.TemporaryDirectory(prefix="romulus-test-") as folder:
        yield Path(folder) / "data"


def cluster_of(data: Path) -> Path:
    (version,) = data.glob("pg*/PG_VERSION")
    return version.parent


def keep_a_row(server: EmbeddedPostgres) -> None:
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("CREATE TABLE kept (value text)")
        connection.execute("INSERT INTO kept VALUES ('committed')")


def kept_rows(server: EmbeddedPostgres) -> list[tuple[str]]:
    with psycopg.connect(server.dsn()) as connection:
        return connection.execute("SELECT value FROM kept").fetchall()


def test_the_settings_of_a_folder_are_known_before_its_server_was_started(data: Path) -> None:
    settings = database_settings(data)
    options = broker_options(settings)
    with (
        EmbeddedPostgres(data, durable=False),
        psycopg.connect(options["conn_string"]) as connection,
    ):
        assert connection.info.host == settings["HOST"]
        assert connection.info.dbname == "romulus"


def test_the_broker_follows_the_database_entry_that_it_is_given(data: Path) -> None:
    clone = {**database_settings(data), "NAME": "clone_1"}
    assert "dbname='clone_1'" in broker_options(clone)["conn_string"]


def test_the_server_is_durable_unless_a_test_asks_for_less(data: Path) -> None:
    shown = "SELECT current_setting('fsync'), current_setting('synchronous_commit')"
    for durable, expected in ((True, "on"), (False, "off")):
        with (
            EmbeddedPostgres(data, durable=durable) as server,
            psycopg.connect(server.dsn()) as connection,
        ):
            assert connection.execute(shown).fetchall() == [(expected, expected)]


def test_what_a_refused_statement_was_to_keep_is_not_in_its_log(data: Path) -> None:
    """Promise P9: a form that is sent twice is refused, its text among the values."""
    with EmbeddedPostgres(data, durable=False) as server:
        keep_a_row(server)
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("ALTER TABLE kept ADD CHECK (value <> 'private words')")
            with pytest.raises(psycopg.errors.CheckViolation, match="private words"):
                connection.execute("INSERT INTO kept VALUES ('private words')")
        said = server.log.read_text()
    assert "violates check constraint" in said
    assert "VALUES ('private words')" not in said
    assert "Failing row" not in said


def test_stop_leaves_no_process_and_no_socket(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        assert list(server.sockets.iterdir())
    assert not server.is_running
    assert list(server.sockets.iterdir()) == []
    assert not (cluster_of(data) / "postmaster.pid").exists()
    assert list(processes_in(cluster_of(data))) == []


def test_what_was_written_is_there_after_a_stop_and_a_start(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        keep_a_row(server)
    with EmbeddedPostgres(data, durable=False) as server:
        assert kept_rows(server) == [("committed",)]


def test_committed_rows_survive_sigkill_of_the_server(data: Path) -> None:
    with EmbeddedPostgres(data) as server:
        keep_a_row(server)
        killed = server.pid
        assert killed is not None
        os.kill(killed, signal.SIGKILL)
        wait_for(lambda: not server.is_running, "the server is dead")

        server.start()

        assert server.pid != killed
        assert kept_rows(server) == [("committed",)]


def test_a_second_owner_is_refused_and_the_first_goes_on(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        with pytest.raises(AlreadyRunning, match=str(os.getpid())):
            EmbeddedPostgres(data, durable=False).start()
        keep_a_row(server)


def test_the_next_owner_may_come_when_the_first_has_stopped(data: Path) -> None:
    first = EmbeddedPostgres(data, durable=False)
    first.start()
    first.stop()
    with EmbeddedPostgres(data, durable=False) as second:
        assert second.is_running


def test_a_lock_file_that_names_a_foreign_process_is_in_nobodys_way(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        keep_a_row(server)
        lock_file = cluster_of(data) / "postmaster.pid"
        content = lock_file.read_text().splitlines()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as foreign:
        lock_file.write_text("\n".join([str(foreign.pid), *content[1:]]) + "\n")
        with EmbeddedPostgres(data, durable=False) as server:
            assert kept_rows(server) == [("committed",)]
        assert foreign.poll() is None
        foreign.communicate(b"\n")


def test_a_server_without_an_owner_is_replaced(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        keep_a_row(server)
    cluster = prepare(server.data, server.sockets, durable=False)
    arguments = ("-D", cluster.folder, "-k", server.sockets, "-c", "listen_addresses=")
    command = cluster.command(cluster.binaries.postgres, *arguments)
    with subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.DEVNULL) as orphan:
        wait_for((cluster.folder / "postmaster.pid").exists, "the orphan holds the folder")
        with EmbeddedPostgres(data, durable=False) as server:
            assert server.pid != orphan.pid
            assert orphan.wait() == 0
            assert kept_rows(server) == [("committed",)]


OWNER = """
import sys
from pathlib import Path
from romulus_site.embedded import EmbeddedPostgres

with EmbeddedPostgres(Path(sys.argv[1]), durable=False) as server:
    print(server.pid, flush=True)
    sys.stdin.read()
"""


@linux_only
def test_a_killed_owner_takes_its_server_along(data: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, str(data)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        pid = int(owner.stdout.readline())
        owner.kill()
    cluster = cluster_of(data)
    wait_for(lambda: not is_server_of(pid, cluster), "the server has ended too")
    with EmbeddedPostgres(data, durable=False) as server:
        assert server.is_running


@pytest.mark.parametrize("name", ["x" * 120, "with space, and comma"])
def test_a_path_that_no_socket_can_have_gets_a_private_folder_elsewhere(
    data: Path, name: str
) -> None:
    awkward = data / name
    folder = Path(database_settings(awkward)["HOST"])
    assert folder == Path(database_settings(awkward)["HOST"])
    with EmbeddedPostgres(awkward, durable=False) as server:
        assert server.sockets == folder
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        keep_a_row(server)
    assert not folder.exists()
    with EmbeddedPostgres(awkward, durable=False) as server:
        assert kept_rows(server) == [("committed",)]


def test_permissions_of_parent_folders_are_left_alone(data: Path) -> None:
    data.mkdir(mode=0o700)
    inner = data / "deeper" / "data"
    inner.parent.mkdir(mode=0o700)
    try:
        with EmbeddedPostgres(inner, durable=False) as server:
            keep_a_row(server)
    except EmbeddedError as error:
        if os.geteuid() != 0 or "does not run as root" not in str(error):
            raise
        # Root on a machine that forbids user namespaces: refused, and told what to do.
    for folder in (data.parent, data, inner.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_data_of_another_major_version_is_never_put_aside_in_silence(data: Path) -> None:
    (data / "pg12").mkdir(parents=True)
    (data / "pg12" / "PG_VERSION").write_text("12\n")
    with pytest.raises(EmbeddedError, match="holds the data of PostgreSQL 12"):
        EmbeddedPostgres(data, durable=False).start()


def test_a_half_made_cluster_is_made_anew(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False):
        cluster = cluster_of(data)
    cluster.rename(data / f"draft-{cluster.name}")
    with EmbeddedPostgres(data, durable=False) as server:
        keep_a_row(server)


def send(connection: psycopg.Connection, queue: str) -> None:
    connection.execute("SELECT pgmq.send(%s, '{}')", [queue])


def count(connection: psycopg.Connection, queue: str) -> int:
    table = sql.Identifier("pgmq", f"q_{queue}")
    row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(table)).fetchone()
    assert row is not None
    return int(row[0])


def test_the_queues_are_made_once_and_kept(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        ensure_pgmq(server.dsn(), queues=["hints"])
        with psycopg.connect(server.dsn()) as connection:
            send(connection, "hints")
        ensure_pgmq(server.dsn(), queues=["hints", "more"])
        with psycopg.connect(server.dsn()) as connection:
            assert (count(connection, "hints"), count(connection, "more")) == (1, 0)


def test_an_older_queue_schema_of_ours_is_replaced_and_a_strangers_is_not(data: Path) -> None:
    with EmbeddedPostgres(data, durable=False) as server:
        for comment, kept in (("Installed by Romulus: PGMQ 0.1", 0), ("by the database team", 1)):
            ensure_pgmq(server.dsn(), queues=["hints"])
            with psycopg.connect(server.dsn()) as connection:
                send(connection, "hints")
                connection.execute(sql.SQL("COMMENT ON SCHEMA pgmq IS {}").format(comment))
            ensure_pgmq(server.dsn(), queues=["hints"])
            with psycopg.connect(server.dsn()) as connection:
                assert count(connection, "hints") == kept
