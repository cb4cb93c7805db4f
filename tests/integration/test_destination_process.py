"""The rehearsal destination as a process: starting, ending, being killed, and what is inside."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from reconciliation.rehearsal.execution import Execution
from reconciliation.rehearsal.keys import KeysInFlight
from reconciliation.rehearsal.store import Store
from reconciliation.rehearsal.wire import Request
from tests.destination import (
    COMMAND,
    COMMENTS,
    REFUNDS,
    ROOT,
    RunningDestination,
    eventually,
    keyed,
    refund,
    running_destination,
)

# SQLite calls synchronous=FULL 2.
PRAGMAS = {"journal_mode": "wal", "synchronous": 2}


def test_effects_keys_faults_and_settings_survive_sigkill(tmp_path: Path) -> None:
    with running_destination(tmp_path) as destination, destination.as_account() as http:
        first = http.post(REFUNDS, json=refund(), headers=keyed())
        destination.client.arm("error_before", status=418, order="A2")
        destination.client.settings("lookup", visibility_lag_seconds=7)
        destination.kill()
        assert not destination.client.health()
        destination.restart()
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert again.content == first.content
        assert again.headers["Idempotent-Replayed"] == "true"
        armed = http.post(REFUNDS, json=refund(order="A2"), headers=keyed("key-2"))
        assert armed.status_code == 418
        assert destination.client.settings()["lookup"]["visibility_lag_seconds"] == 7
        assert len(destination.client.effects()) == 1


def test_a_kill_before_the_effect_leaves_the_key_free(tmp_path: Path) -> None:
    with running_destination(tmp_path) as destination, destination.as_account() as http:
        slow = {**keyed(), "Rehearsal-Fault": "slow;seconds=600"}
        with ThreadPoolExecutor() as pool, destination.as_account() as first:
            lost = pool.submit(first.post, REFUNDS, json=refund(), headers=slow)
            eventually(destination.client.journal)
            destination.kill()
            assert isinstance(lost.exception(10), httpx.TransportError)
        destination.restart()
        (entry,) = destination.client.journal()
        assert (entry.done, entry.status) == (None, None)
        assert entry.fault == "slow;seconds=600.0"
        assert destination.client.effects() == []
        answer = http.post(REFUNDS, json=refund(), headers=keyed())
        assert answer.status_code == 201
        assert "Idempotent-Replayed" not in answer.headers


def test_a_kill_after_the_effect_keeps_it_under_its_key(tmp_path: Path) -> None:
    with running_destination(tmp_path) as destination, destination.as_account() as http:
        delayed = {**keyed(), "Rehearsal-Fault": "apply_then_delay;seconds=600"}
        with ThreadPoolExecutor() as pool, destination.as_account() as first:
            lost = pool.submit(first.post, REFUNDS, json=refund(), headers=delayed)
            (effect,) = eventually(destination.client.effects)
            destination.kill()
            assert isinstance(lost.exception(10), httpx.TransportError)
        destination.restart()
        again = http.post(REFUNDS, json=refund(), headers=keyed())
        assert again.json()["id"] == effect.resource_id
        assert len(destination.client.effects()) == 1


def test_sigkill_under_load_loses_nothing_that_was_answered(tmp_path: Path) -> None:
    answered: list[str] = []

    def send(destination: RunningDestination, sender: int) -> None:
        with destination.as_account() as client:
            for number in range(10_000):
                try:
                    answer = client.post(
                        REFUNDS, json=refund(), headers=keyed(f"{sender}-{number}")
                    )
                except httpx.TransportError:
                    return
                answered.append(answer.json()["id"])

    with running_destination(tmp_path) as destination:
        with ThreadPoolExecutor(4) as pool:
            senders = [pool.submit(send, destination, number) for number in range(4)]
            eventually(lambda: len(answered) > 50, within_seconds=30)
            destination.kill()
            for sender in senders:
                sender.result(30)
        destination.restart()
        effects = destination.client.effects()
        assert set(answered) <= {effect.resource_id for effect in effects}
        # At most the one request of each sender that was under way is not in `answered`.
        assert len(effects) <= len(answered) + 4
        under_way = [entry for entry in destination.client.journal() if entry.done is None]
        assert len(under_way) <= 4


def test_sigterm_ends_it_at_once_and_cleanly(tmp_path: Path) -> None:
    with running_destination(tmp_path) as destination:
        with ThreadPoolExecutor() as pool, destination.as_account() as http:
            slow = {"Rehearsal-Fault": "slow;seconds=600"}
            cut = pool.submit(http.post, COMMENTS, json={"body": "x"}, headers=slow)
            eventually(destination.client.journal)
            assert destination.terminate() == 0
            assert isinstance(cut.exception(10), httpx.RemoteProtocolError)
        destination.restart()
        (entry,) = destination.client.journal()
        assert (entry.done, entry.answered) == ("nothing", "none")
        assert destination.client.effects() == []


def test_one_folder_has_one_destination(tmp_path: Path) -> None:
    with running_destination(tmp_path):
        assert "another destination is using" in refusal(tmp_path)


def test_a_port_in_use_is_said(tmp_path: Path) -> None:
    with running_destination(tmp_path / "one") as destination:
        port = httpx.URL(destination.url).port or 0
        assert f"port {port} on 127.0.0.1 is in use" in refusal(tmp_path / "two", port)


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "rehearsal destination: " in refusal(tmp_path / "file")


def test_a_commit_is_flushed_to_the_disk(tmp_path: Path) -> None:
    # Only a power cut could show it otherwise: SIGKILL leaves the kernel's cache alone.
    store = Store(tmp_path)
    with store.reading() as connection:
        modes = [connection.execute(f"PRAGMA {name}").fetchone()[0] for name in PRAGMAS]
    store.close()
    assert dict(zip(PRAGMAS, modes, strict=True)) == PRAGMAS


def test_a_key_that_was_done_between_look_and_hold_is_replayed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, because the race needs one exact interleaving."""

    class HeldLate(KeysInFlight):
        """Lets the same request be executed as a whole before the first one holds its key."""

        overtaken = False

        @contextmanager
        def hold(self, account: str, key: str) -> Iterator[bool]:
            if not self.overtaken:
                self.overtaken = True
                execution.deliver(request)
            with super().hold(account, key) as free:
                yield free

    monkeypatch.setattr("reconciliation.rehearsal.execution.KeysInFlight", HeldLate)
    store = Store(tmp_path)
    execution = Execution(store, pause=lambda _: None)
    headers = {"authorization": "Bearer acct_1", "idempotency-key": "key-1"}
    request = Request("POST", REFUNDS, {}, headers, json.dumps(refund()).encode())
    delivery = execution.deliver(request)
    with store.reading() as connection:
        found = connection.execute("SELECT resource_id FROM effects").fetchall()
    store.close()
    assert delivery.answer is not None
    assert [row["resource_id"] for row in found] == [json.loads(delivery.answer.body)["id"]]
    assert ("Idempotent-Replayed", "true") in delivery.answer.headers


def test_it_imports_nothing_but_itself_and_the_standard_library() -> None:
    listed = (
        "import sys; import reconciliation.rehearsal.destination;"
        "names = {name.partition('.')[0] for name in sys.modules};"
        "print(sorted(names - set(sys.stdlib_module_names)));"
        "print([name for name in sys.modules if name.startswith(('reconciliation.', 'django'))"
        " and not name.startswith('reconciliation.rehearsal')])"
    )
    # -S keeps the interpreter's own start-up hooks out of the list.
    command = [sys.executable, "-S", "-c", listed]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines() == ["['__main__', 'reconciliation']", "[]"]


def refusal(folder: Path, port: int = 0) -> str:
    """Start a destination that cannot start, and return what it says."""
    command = [*COMMAND, "--data", str(folder), "--port", str(port)]
    ended = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.returncode == 1
    assert ended.stdout == ""
    return ended.stderr
