"""Outputs, however large or private: kept in the form that fits, and given back as they were."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import InvalidToken
from django.conf import settings as django_settings
from django.core.files.storage import FileSystemStorage, storages
from django.db import connection
from pytest_django import Settings

from reconciliation import sealing as requests
from tests import storages as kinds
from tests.claiming import ready_run
from tests.factories import advanced, started_run
from tests.storages import files_in, use
from workflows.core.definitions import Step, Workflow
from workflows.core.errors import (
    OutputDamaged,
    OutputError,
    OutputNotKept,
    OutputPurged,
    OutputsAway,
    UsageError,
)
from workflows.models import Attempt, Run
from workflows.models.ids import new_id
from workflows.sealing import seal, unseal
from workflows.services.clock import database_now
from workflows.services.outputs import Kept, keep_output, purge_delay, read_output
from workflows.services.run_view import RunView

pytestmark = pytest.mark.django_db

OLD, NEW = "the-old-key-of-this-test", "the-new-key-of-this-test"
SECRET = "4111 1111 1111 1111"
SMALL = {"card": SECRET}
LARGE = {"card": SECRET, "lines": ["line"] * 100}
EARLIER = datetime(2026, 3, 10, 3, 5, tzinfo=UTC)

FLOW = Workflow("tests.outputs")


@FLOW.step()
def open_step(run: RunView) -> Any: ...


@FLOW.step(sensitive=True)
def sensitive_step(run: RunView) -> Any: ...


OPEN, SENSITIVE = FLOW.steps["open_step"], FLOW.steps["sensitive_step"]
FORMS = [
    pytest.param(OPEN, SMALL, "plain", id="plain"),
    pytest.param(SENSITIVE, SMALL, "sealed", id="sealed"),
    pytest.param(OPEN, LARGE, "object", id="object"),
    pytest.param(SENSITIVE, LARGE, "object", id="sealed object"),
]


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    settings.ROMULUS_KEYS = [OLD]
    return use(settings, tmp_path / "outputs")


def kept(step: Step, plain: Any, run: UUID | None = None, attempt: UUID | None = None) -> Kept:
    return keep_output(step, plain, run=run or new_id(), attempt=attempt or new_id())


def committed(step: Step, plain: Any) -> Attempt:
    """The row of an attempt that left `plain`, read back from the database."""
    run, attempt = started_run(), new_id()
    return stored(step, kept(step, plain, run.pk, attempt), run, attempt)


def stored(step: Step, output: Kept, run: Run, attempt: UUID) -> Attempt:
    now = database_now()
    row = Attempt.objects.create(
        pk=attempt,
        run=run,
        step=step.name,
        visit=1,
        number=1,
        worker=new_id(),
        fence=1,
        claimed_at=now,
        ended_at=now,
        state="committed",
        output=json.loads(output.text),
        output_form=output.form,
    )
    return Attempt.objects.get(pk=row.pk)


def column_of(attempt: Attempt) -> str:
    """What lies in the database."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT output::text FROM workflows_attempt WHERE id = %s", [attempt.pk])
        return str(cursor.fetchone()[0])


def object_of(folder: Path) -> Path:
    (name,) = files_in(folder)
    return folder / name


def read_error(attempt: Attempt) -> OutputError:
    with pytest.raises(OutputError) as caught:
        read_output(attempt)
    return caught.value


# --- forms ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("step", "plain", "form"), FORMS)
def test_an_output_comes_back_as_it_was(step: Step, plain: Any, form: str) -> None:
    attempt = committed(step, plain)
    assert attempt.output_form == form
    assert read_output(attempt) == plain


@pytest.mark.parametrize("step", [OPEN, SENSITIVE])
@pytest.mark.parametrize(
    "plain", [None, False, 0, "", [], {}, 1.5, "é\n\u2028", ["é" * 200], {"object": "x", "size": 1}]
)
def test_whatever_json_it_is_comes_back(step: Step, plain: Any) -> None:
    back = read_output(committed(step, plain))
    assert (back, type(back)) == (plain, type(plain))


def test_a_small_output_of_no_secret_is_the_row_s_alone(folder: Path) -> None:
    output = kept(OPEN, SMALL)
    assert (output.form, output.value, output.text) == ("plain", SMALL, json.dumps(SMALL))
    assert not folder.exists()


@pytest.mark.parametrize(("size", "form"), [(100, "plain"), (101, "object")])
def test_the_limit_counts_the_bytes_of_the_json_text(size: int, form: str) -> None:
    text = "x" * (size - len('""'))
    assert kept(OPEN, text).form == form


def test_an_object_is_referred_to_by_name_hash_and_size(folder: Path) -> None:
    run, attempt = new_id(), new_id()
    output = kept(OPEN, LARGE, run, attempt)
    data = object_of(folder).read_bytes()
    assert json.loads(data) == LARGE
    assert output.value == json.loads(output.text)
    assert output.value == {
        "object": files_in(folder)[0],
        "sha256": hashlib.sha256(data).hexdigest(),
        "size": len(data),
        "sealed": False,
    }
    assert output.value["object"].startswith(f"{str(run)[:6]}/{run}/{attempt}-")


# --- secrets ----------------------------------------------------------------------------------


def test_a_sensitive_output_lies_nowhere_in_the_open(folder: Path) -> None:
    small, large = committed(SENSITIVE, SMALL), committed(SENSITIVE, LARGE)
    for kept_text in (column_of(small), column_of(large), object_of(folder).read_text()):
        assert SECRET not in kept_text
        assert "card" not in kept_text
    assert SECRET in column_of(committed(OPEN, SMALL))  # the test would see it


@pytest.mark.parametrize("plain", [SMALL, LARGE])
def test_a_replaced_key_opens_what_it_sealed_until_it_is_taken_away(
    plain: Any, settings: Settings
) -> None:
    before = committed(SENSITIVE, plain)
    settings.ROMULUS_KEYS = [NEW, OLD]
    after = committed(SENSITIVE, plain)
    assert read_output(before) == read_output(after) == plain
    settings.ROMULUS_KEYS = [NEW]  # the first key seals
    assert read_output(after) == plain
    error = read_error(before)
    assert isinstance(error, OutputDamaged)
    assert "ROMULUS_KEYS" in str(error)
    assert str(before.pk) in str(error)


def test_what_is_sealed_for_one_purpose_opens_for_no_other() -> None:
    output = kept(SENSITIVE, SMALL).value.encode()
    with pytest.raises(InvalidToken):
        requests.unseal(output)
    with pytest.raises(InvalidToken):
        unseal(seal(b"{}", b"one"), b"another")


def test_requests_sealed_by_earlier_releases_still_open(settings: Settings) -> None:
    settings.ROMULUS_KEYS = ["a-key-of-the-tests-that-protects-nothing"]
    token = (
        b"gAAAAABrDLAhZE0_dz2mLNxhtGZCD25QSWVX3Yfm5OMF-l2r80nThv_pWodysXRIs5zheA8H35IPdwldhxlPlbNH"
        b"imyAkSc9Tek5xTGMr7Ph9QOn8Pn38Fg="
    )
    assert requests.unseal(token) == b'{"amount": "125.00"}'


# --- storages that fail -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "problem"),
    [
        (kinds.LosesBytes, "another size"),
        (kinds.AddsBytes, "another size"),
        (kinds.ChangesBytes, "not those that were written"),
        (kinds.ForgetsAtOnce, "FileNotFoundError"),
        (kinds.IsFull, "No space left on device"),
    ],
)
@pytest.mark.parametrize("step", [OPEN, SENSITIVE])
def test_what_a_storage_does_not_give_back_is_not_kept(
    kind: type[FileSystemStorage], problem: str, step: Step, settings: Settings, folder: Path
) -> None:
    use(settings, folder, kind)
    with pytest.raises(OutputNotKept) as caught:
        kept(step, LARGE)
    message = str(caught.value)
    assert problem in message
    assert step.name in message
    assert kind.__name__ in message
    assert "STORAGES" in message  # what to look at
    assert SECRET not in message
    assert files_in(folder) == []  # a full disk is not filled further by each try


def test_a_storage_that_is_away_does_not_keep_it_and_names_no_credential(
    settings: Settings, folder: Path
) -> None:
    use(settings, folder, kinds.IsAway)
    with pytest.raises(OutputNotKept, match=r"no answer from https://\[hidden\]@storage.example"):
        kept(OPEN, LARGE)


def test_a_small_output_needs_no_storage(settings: Settings, folder: Path) -> None:
    use(settings, folder, kinds.IsFull)
    assert kept(OPEN, SMALL).form == "plain"
    assert kept(SENSITIVE, SMALL).form == "sealed"


def test_no_later_try_changes_what_is_referred_to(settings: Settings, folder: Path) -> None:
    use(settings, folder, kinds.OverwritesNames)
    run, attempt = started_run(), new_id()
    first = kept(OPEN, LARGE, run.pk, attempt)
    kept(OPEN, LARGE | {"card": "another"}, run.pk, attempt)  # a commit whose answer was lost
    assert read_output(stored(OPEN, first, run, attempt)) == LARGE


def test_the_name_that_the_storage_chose_is_the_one_referred_to(
    settings: Settings, folder: Path
) -> None:
    use(settings, folder, kinds.ChoosesNames)
    attempt = committed(OPEN, LARGE)
    assert files_in(folder) == [attempt.output["object"]]
    assert read_output(attempt) == LARGE


# --- damage found on reading ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: data[:-1], "another size"),
        (lambda data: data + b" ", "another size"),
        (lambda data: data.replace(b"1111", b"2222"), "not those that were written"),
    ],
)
def test_an_object_that_was_changed_is_not_read(change: Any, problem: str, folder: Path) -> None:
    attempt = committed(OPEN, LARGE)
    path = object_of(folder)
    path.write_bytes(change(path.read_bytes()))
    error = read_error(attempt)
    assert isinstance(error, OutputDamaged)
    assert problem in str(error)
    assert attempt.output["object"] in str(error)
    assert SECRET not in str(error)


def test_an_object_that_is_missing_is_named(folder: Path) -> None:
    attempt = committed(OPEN, LARGE)
    object_of(folder).unlink()
    error = read_error(attempt)
    assert isinstance(error, OutputDamaged)
    assert f"object {attempt.output['object']} is missing" in str(error)


def test_a_sealed_row_that_was_changed_is_not_read() -> None:
    attempt = committed(SENSITIVE, SMALL)
    attempt.output = attempt.output[:-5] + "AAAA="
    assert isinstance(read_error(attempt), OutputDamaged)


def test_a_storage_that_is_away_has_damaged_nothing(settings: Settings, folder: Path) -> None:
    attempt = committed(OPEN, LARGE)
    use(settings, folder, kinds.IsAway)
    error = read_error(attempt)
    assert isinstance(error, OutputsAway)
    assert "IsAway" in str(error)
    use(settings, folder)
    assert read_output(attempt) == LARGE


@pytest.mark.parametrize(("step", "plain", "form"), FORMS)
def test_a_purged_output_says_since_when(step: Step, plain: Any, form: str) -> None:
    attempt = committed(step, plain)
    attempt.purged_at = EARLIER
    error = read_error(attempt)
    assert isinstance(error, OutputPurged)
    assert "purged on 2026-03-10 at 03:05 UTC" in str(error)
    assert step.name in str(error)


def test_one_purged_between_row_and_object_is_purged_and_not_damaged(folder: Path) -> None:
    attempt = committed(OPEN, LARGE)
    Attempt.objects.update(purged_at=EARLIER)
    object_of(folder).unlink()
    assert isinstance(read_error(attempt), OutputPurged)


def test_an_attempt_without_an_output_has_none_to_read() -> None:
    attempt = committed(OPEN, SMALL)
    attempt.output, attempt.output_form = None, None
    with pytest.raises(UsageError, match="there is none"):
        read_output(attempt)


# --- the files --------------------------------------------------------------------------------


def test_the_files_are_their_owner_s_alone(folder: Path) -> None:
    kept(OPEN, LARGE)
    path = object_of(folder)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for parent in (path.parent, path.parent.parent, folder):
        assert stat.S_IMODE(parent.stat().st_mode) == 0o700


def test_the_files_have_no_address(folder: Path) -> None:
    kept(OPEN, LARGE)
    with pytest.raises(ValueError, match="never served"):
        storages["outputs"].url(files_in(folder)[0])


def test_a_file_and_its_folders_are_flushed_before_they_are_referred_to(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: set[int] = set()
    monkeypatch.setattr(os, "fsync", lambda descriptor: flushed.add(os.fstat(descriptor).st_ino))
    kept(OPEN, LARGE)
    path = object_of(folder)
    named = (path, path.parent, path.parent.parent, folder)
    assert {each.stat().st_ino for each in named} <= flushed


def settings_under(**environment: str) -> Any:
    """The storage settings of a process with these variables."""
    asked = (
        "import json; from romulus_site import settings as s;"
        "print(json.dumps([s.STORAGES['outputs'], str(s.ROMULUS_DATA)], default=str))"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked],
        cwd=django_settings.BASE_DIR,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return json.loads(done.stdout)


def test_by_default_they_lie_in_the_installation_s_folder() -> None:
    storage, data = settings_under()
    assert storage == {
        "BACKEND": "workflows.storage.PrivateFiles",
        "OPTIONS": {"location": f"{data}/outputs"},
    }


def test_the_environment_names_another_storage() -> None:
    storage, _ = settings_under(
        ROMULUS_OUTPUTS_BACKEND="storages.backends.s3.S3Storage",
        ROMULUS_OUTPUTS_OPTIONS='{"bucket_name": "romulus-outputs"}',
    )
    assert storage == {
        "BACKEND": "storages.backends.s3.S3Storage",
        "OPTIONS": {"bucket_name": "romulus-outputs"},
    }


# --- how long ---------------------------------------------------------------------------------

DAY = timedelta(days=1)


@pytest.mark.parametrize(
    ("workflow", "steps", "delay"),
    [
        (None, [None, None], None),
        (DAY, [None], DAY),
        (DAY, [2 * DAY], DAY),  # the input goes with the workflow's
        (2 * DAY, [None, DAY], DAY),
        (None, [2 * DAY, DAY, None], DAY),
    ],
)
def test_the_first_purge_is_after_the_shortest_retention(
    workflow: timedelta | None, steps: list[timedelta | None], delay: timedelta | None
) -> None:
    flow = Workflow("tests.retained", retain=workflow)
    for number, retain in enumerate(steps):

        def function(run: RunView) -> Any: ...

        function.__name__ = f"step_{number}"
        flow.step(retain=retain)(function)
    assert purge_delay(flow) == delay


# --- through the engine -----------------------------------------------------------------------


def test_a_later_step_reads_a_large_output(folder: Path) -> None:
    run = advanced(ready_run(function=lambda _: LARGE))
    assert run.state == "completed"
    first, second = run.attempts.order_by("fence")
    assert files_in(folder) == sorted([first.output["object"], second.output["object"]])
    assert read_output(second) == LARGE  # `after` gives what `act` left


def test_an_output_that_is_not_kept_ends_in_a_hold_that_says_so(
    settings: Settings, folder: Path
) -> None:
    use(settings, folder, kinds.LosesBytes)
    calls: list[int] = []
    run = advanced(ready_run(function=lambda _: [calls.append(1), LARGE][1]))
    assert run.state == "held"
    assert run.failure["reason"] == "output_not_kept"
    assert "LosesBytes" in run.failure["message"]
    advanced(run)
    assert calls == [1]  # what the step did is done, and is not done again
