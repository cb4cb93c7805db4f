"""`manage.py bench` works, with tiny numbers. How fast anything is, no test says."""

from __future__ import annotations

import argparse
import io
import json
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from romulus_site.bench import (
    ceiling,
    console,
    costs,
    events,
    history,
    latency,
    operations,
    recovery,
    report,
    start,
    steps,
)
from romulus_site.bench.database import Server, bench_server
from romulus_site.bench.proxy import CountingProxy
from romulus_site.bench.steps import Shape, steady
from romulus_site.bench.talk import Child, ChildFailed
from romulus_site.bench.walkers import parts
from tests.databases import url_of

# A server that `DATABASE_URL` names is one for all: none may find the databases of another.

WALK = ("--in-flight", 1, 2, "--runs", 2, "--steps", 3, "--repeats", 1)
SUMMARY = {"median", "lowest", "highest"}
COSTS = {
    *("milliseconds", "round_trips", "commits", "wal_bytes", "wal_bytes_without_images"),
    *("worker_cpu_ms", "database_cpu_ms"),
}


@pytest.fixture(scope="module")
def shared(
    database_server: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Server, str]]:
    """The server of the tests, and a database there that the bench has migrated: once, because
    that takes longer than what it measures."""
    entry = settings.DATABASES["default"]
    url = url_of(entry | {"NAME": "postgres"})
    folder = tmp_path_factory.mktemp("bench")
    server = Server(entry, os.environ | {"DATABASE_URL": url}, folder)
    with server.migrated() as name:
        yield server, name


@pytest.fixture
def server_of_the_tests(
    shared: tuple[Server, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Let the bench make its databases there, as with `DATABASE_URL`, and from that one."""
    server, migrated = shared
    monkeypatch.setenv("DATABASE_URL", server.environment["DATABASE_URL"])
    monkeypatch.setattr(settings, "ROMULUS_EMBEDDED", False)
    monkeypatch.setattr(Server, "migrated", lambda each: each.database(migrated))
    yield
    with server.connect() as connection:
        left = connection.execute(
            "SELECT datname FROM pg_database WHERE datname LIKE 'romulus_bench_%'"
        )
        assert left.fetchall() == [(migrated,)]


def said(*arguments: object) -> tuple[str, str]:
    """Run the command; return what it wrote to standard output and to standard error."""
    out, progress = io.StringIO(), io.StringIO()
    call_command("bench", *map(str, arguments), stdout=out, stderr=progress)
    return out.getvalue(), progress.getvalue()


def measured(*arguments: object) -> dict[str, Any]:
    out, _ = said(*arguments, "--json")
    document: dict[str, Any] = json.loads(out)
    assert document["bench"] == arguments[0]
    assert {"postgresql", "embedded", "fsync", "synchronous_commit"} <= document["machine"].keys()
    return document


# --- each measurement ---------------------------------------------------------------------------


@pytest.mark.processes
def test_steps_gives_throughput_costs_and_their_ratio_to_the_ceiling(
    server_of_the_tests: None,
) -> None:
    document = measured("steps", *WALK)
    assert [number["in_flight"] for number in document["in_flight"]] == [1, 2]
    for number in document["in_flight"]:
        for name in ("steps_per_second", "ceiling_per_second", "ratio"):
            assert number[name].keys() == SUMMARY
        assert number["ratio_to_ceiling"] >= document["ratio_to_ceiling"] > 0
        for name in ("steady_step", "step_with_claim", "ceiling_step"):
            assert number[name].keys() == COSTS
    text = "\n".join(steps.lines(document))
    assert "ratio to the ceiling" in text
    assert "one step, 2 in flight" in text


@pytest.mark.processes
def test_ceiling_is_measured_on_an_embedded_server_of_its_own() -> None:
    if not settings.ROMULUS_EMBEDDED:
        pytest.skip("the tests run on a server that DATABASE_URL names")
    out, progress = said("ceiling", *WALK)
    assert "the bare loop" in out
    assert "embedded, fsync on, synchronous_commit on" in out
    assert "warm-up" in progress


@pytest.mark.processes
def test_ceiling_as_json(server_of_the_tests: None) -> None:
    document = measured("ceiling", *WALK)
    for number in document["in_flight"]:
        assert number["ceiling_per_second"].keys() == SUMMARY
        assert number["ceiling_step"].keys() == COSTS
    assert ceiling.lines(document)


@pytest.mark.processes
def test_latency_of_a_start_and_of_a_step_with_a_real_worker(server_of_the_tests: None) -> None:
    document = measured("latency", "--runs", 2, "--pause", 0.01)
    assert document["broker"] == "pgmq"
    times = ("start_to_first_step_ms", "start_call_ms", "celery_alone_ms", "step_to_step_ms")
    for name in times:
        assert document[name].keys() == SUMMARY | {"p95"}
        assert document[name]["lowest"] > 0
    assert document["commit_ms"].keys() == SUMMARY
    assert document["start_to_celery_ratio"] > 0
    assert document["step_to_commit_ratio"] > 0
    assert "start to first step, ms" in "\n".join(latency.lines(document))


@pytest.mark.processes
def test_events_gives_latency_rates_memory_and_plans(server_of_the_tests: None) -> None:
    sizes = ("--events", 50, "--waits", 5, "--runs", 2, "--pause", 0.01)
    document = measured("events", *sizes, "--deliveries", 16, "--repeats", 1)
    for side in ("empty", "filled"):
        found = document[side]
        assert found["event_to_step_ms"].keys() == SUMMARY | {"p95"}
        assert found["unmatched_to_bare"]["median"] > 0
        assert found["matched_to_bare"]["median"] > 0
        assert sum(found["memory"]["answers"].values()) == events.LARGE_AT_ONCE
    assert [plan["error"] for plan in document["statements"]] == [None] * 9
    assert "event to its run's next step, ms" in "\n".join(events.lines(document))


@pytest.mark.processes
def test_operations_gives_the_costs_of_a_write_beside_its_bare_calls(
    server_of_the_tests: None,
) -> None:
    document = measured("operations", "--runs", 1, "--writes", 2, "--repeats", 1)
    assert document["operations_per_second"]["median"] > 0
    assert document["steady_write"]["commits"]["median"] > 0
    assert document["overhead_ms"].keys() == SUMMARY
    assert "\n".join(operations.lines(document))


@pytest.mark.processes
def test_history_fills_the_tables_and_shows_the_plans(server_of_the_tests: None) -> None:
    document = measured("history", "--finished", 2000, *WALK)
    assert document["ratio"] > 0
    assert [number["in_flight"] for number in document["in_flight"]] == [1, 2]
    for number in document["in_flight"]:
        for name in ("without_per_second", "with_per_second", "ratio"):
            assert number[name].keys() == SUMMARY
        assert number["step_without"].keys() == number["step_with"].keys() == COSTS
    shown = {plan["statement"]: plan for plan in document["statements"]}
    assert [plan["error"] for plan in shown.values()] == [None] * len(shown)
    by = {index["name"]: index["partial"] for index in shown["due_runs"]["indexes"]}
    assert any(by.values())
    assert "run_tenant_state_newest" not in by, "no list of all runs leads to those that are due"
    assert "2000 finished runs" in "\n".join(history.lines(document))


@pytest.mark.processes
def test_start_of_many_runs_and_what_their_backlog_costs(server_of_the_tests: None) -> None:
    document = measured("start", "--runs", 30, "--times", 2)
    assert document["start_seconds"] > 0
    for name in ("sweep_ms", "claim_ms"):
        assert document[name]["few"].keys() == document[name]["many"].keys() == SUMMARY
        assert document[name]["ratio"] > 0
    assert "30 runs started in one call" in "\n".join(start.lines(document))


@pytest.mark.processes
def test_recovery_of_a_run_whose_worker_is_killed(server_of_the_tests: None) -> None:
    document = measured("recovery", "--repeats", 1, "--lease", 2)
    assert document["lease_seconds"] == 2
    assert document["recovery_seconds"].keys() == SUMMARY
    assert document["beyond_lease_seconds"].keys() == SUMMARY
    assert "from SIGKILL" in "\n".join(recovery.lines(document))


@pytest.mark.processes
def test_console_visits_every_page_on_a_small_and_a_large_ledger(
    server_of_the_tests: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console, "WARM_UPS", 1)
    sizes = ("--operations", 2000, "--holds", 3, "--people", 3, "--queues", 2, "--visits", 1)
    document = measured("console", *sizes)
    assert document["ledger_rows"]["many"] > document["ledger_rows"]["few"] > 0
    pages = document["pages"]
    assert {page["statuses"][0] for page in pages.values() if not page["is_poll"]} == {200}
    assert pages["poll: needs you"]["statuses"] == [204]
    for page in pages.values():
        assert page["queries"] > 0
        assert page["many"]["ms"].keys() == page["few"]["cpu_ms"].keys() == SUMMARY | {"p95"}
    assert "review queue" in "\n".join(console.lines(document))


# --- when it cannot be measured -----------------------------------------------------------------


def test_a_server_that_does_not_answer_is_told_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(settings, "ROMULUS_EMBEDDED", False)
    entry = settings.DATABASES["default"]
    monkeypatch.setitem(settings.DATABASES, "default", entry | {"HOST": "/nowhere"})
    with pytest.raises(CommandError, match="does not answer") as caught:
        said("ceiling", *WALK)
    assert caught.value.returncode == 1


def test_one_step_a_run_is_too_few_to_tell_what_a_step_costs() -> None:
    with pytest.raises(CommandError, match="two or more"):
        said("steps", "--steps", 1)


def test_the_last_words_of_a_process_that_ended_are_shown(tmp_path: Path) -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "tests.settings"}
    with (
        Child("nothing", environment, tmp_path / "nothing.log") as child,
        pytest.raises(ChildFailed, match=r"No module named 'romulus_site.bench.children.nothing'"),
    ):
        child.hear()


# --- how figures are made -----------------------------------------------------------------------


def test_what_a_steady_step_costs_is_the_difference_that_more_steps_make() -> None:
    # Ten runs: 3 for each claim, 2 for each step.
    whole: costs.Costs = {"commits": 10 * (3 + 2 * 5), "wal_bytes": None}
    of_one_step: costs.Costs = {"commits": 10 * (3 + 2), "wal_bytes": 1.0}
    shape = Shape(in_flight=1, runs=10, steps=5)
    assert steady(shape, whole, of_one_step) == {"commits": 2, "wal_bytes": None}


def test_figures_are_summed_up_by_median_and_spread() -> None:
    assert report.summary([3, 1, 2.00004]) == {"median": 2, "lowest": 1, "highest": 3}
    assert report.summary_of_many(range(1, 101))["p95"] == 95
    assert report.summary_of_many([7])["p95"] == 7
    assert report.ratios([2, 3], [4, 4])["highest"] == 0.75


def test_a_table_has_text_to_the_left_and_figures_to_the_right() -> None:
    lines = report.table(["of", "ms"], [["a step", 1.23456], ["it", None], ["all", 123456.0]])
    assert lines == ["of          ms", "a step   1.235", "it           -", "all     123456"]


def test_work_is_shared_by_processes_without_remainder() -> None:
    assert [parts(16, 3), parts(1, 1), parts(2, 2)] == [[6, 5, 5], [1], [1, 1]]


def test_the_proxy_counts_how_often_the_client_waits_for_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=echo, args=(server,), daemon=True).start()
        proxy = CountingProxy(server.getsockname())
        with socket.create_connection(("127.0.0.1", proxy.port)) as client:
            for _ in range(3):
                client.sendall(b"two ")
                client.sendall(b"messages")
                received = b""
                while len(received) < len(b"two messages"):
                    received += client.recv(64)
        proxy.close()
    assert proxy.trips == 3


def echo(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        while heard := connection.recv(len(b"two messages"), socket.MSG_WAITALL):
            connection.sendall(heard)


def test_every_measurement_has_its_options() -> None:
    for measurement in (steps, ceiling, latency, events, history, start, recovery, console):
        parser = argparse.ArgumentParser()
        measurement.add_arguments(parser)
        assert vars(parser.parse_args([]))


def test_nothing_is_left_of_a_server_of_its_own() -> None:
    if not settings.ROMULUS_EMBEDDED:
        pytest.skip("the tests run on a server that DATABASE_URL names")
    with bench_server() as server:
        folder = server.folder
        assert server.facts()["fsync"] == "on"
    assert not folder.exists()
