"""A case as a file: whole, readable and verifiable by a stranger, and only as it may be seen."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from http import HTTPStatus
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from guardian.shortcuts import assign_perm

from reconciliation.exports import verify
from reconciliation.models import AuditEntry, Operation
from reconciliation.sealing import seal
from reconciliation.services.audit import add_entry, first_broken_entry, hash_of
from reconciliation.services.notes import comment
from tests.deciding import KEEP_HOLDING, decide
from tests.destination import RunningDestination
from tests.factories import (
    advanced,
    held_operation,
    open_hold_of,
    person,
    reader,
    ready_provider,
    started_run,
    stranger,
)
from tests.tampering import tamper

pytestmark = pytest.mark.django_db

SECRET = "sk_live_marker_of_a_secret"
MARKUP = '<img src=x onerror="document.title=1">'


@pytest.fixture
def held(client: Client, destination: RunningDestination) -> Operation:
    """A comment whose answer was lost, held and kept so, among entries about other things;
    `client` is signed in as its owner."""
    ready_provider("desk", destination.url, credential_sealed=seal(SECRET.encode()))
    others(40)
    operation = held_operation(destination)
    others(13)
    decide(open_hold_of(operation), KEEP_HOLDING)
    others(5)
    client.force_login(person())
    return operation


def others(number: int) -> None:
    for place in range(number):
        add_entry("user:9 mallory", "set up", "provider:other", {"reason": f"not theirs {place}"})


def exported(client: Client, operation: Operation, address: str = "operation_evidence") -> bytes:
    answer = client.post(reverse(address, args=[operation.pk]))
    assert answer.status_code == HTTPStatus.OK
    assert answer.headers["Cache-Control"] == "private, no-store"
    return b"".join(answer.streaming_content)  # type: ignore[arg-type]


@pytest.fixture
def unpacked(client: Client, held: Operation, tmp_path: Path) -> Path:
    """The held operation's pack as a stranger has it: a folder."""
    with zipfile.ZipFile(io.BytesIO(exported(client, held))) as archive:
        archive.extractall(tmp_path)
    return tmp_path / f"operation-{held.pk}"


def checked(folder: Path, *options: str) -> tuple[int, str]:
    """What the pack's own script says, run by a Python that knows nothing of Romulus."""
    command = [sys.executable, "-I", "-B", "verify.py", *options]
    done = subprocess.run(command, cwd=folder, env={}, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    return done.returncode, done.stdout


# --- the pack ---------------------------------------------------------------------------------


def test_a_stranger_can_verify_it_with_python_or_sha256sum_alone(
    held: Operation, unpacked: Path
) -> None:
    head = AuditEntry.objects.latest("seq")
    code, said = checked(unpacked, "--head", f"{head.seq}:{head.hash}")
    assert (code, said.splitlines()[0]) == (0, f"WHOLE: operation {held.pk}, held")
    if tool := shutil.which("sha256sum"):
        command = [tool, "--check", "--quiet", "SHA256SUMS"]
        done = subprocess.run(command, cwd=unpacked, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (0, "")


def test_a_zip_is_verified_as_it_was_downloaded(
    client: Client, held: Operation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pack = tmp_path / "pack.zip"
    pack.write_bytes(exported(client, held))
    assert verify.main([str(pack)]) == 0
    assert "WHOLE" in capsys.readouterr().out


def test_it_holds_what_was_meant_sent_said_and_decided(held: Operation, unpacked: Path) -> None:
    case = json.loads((unpacked / "case.json").read_text())
    assert case["operation"]["id"] == str(held.pk)
    assert case["operation"]["parameters_redacted"]["ticket"] == "T-17"
    assert [row["state"] for row in case["transmissions"]] == ["unknown"]
    assert [row["kind"] for row in case["decisions"]] == ["keep_holding"]
    assert [row["reason"] for row in case["holds"]] == ["unguarded"]
    assert case["contract"]["document"]["slug"] == "rehearsal-blind"
    assert case["operation"]["created_at"].endswith("Z")
    shown = [json.loads(file.read_text()) for file in entry_files(unpacked)]
    assert [entry[3] for entry in shown] == ["held", "decided", "exported"]


def entry_files(folder: Path) -> list[Path]:
    files = [file for file in (folder / "audit").iterdir() if file.stem.isdecimal()]
    return sorted(files, key=lambda file: int(file.stem))


def test_of_entries_about_other_things_there_are_digests_alone(unpacked: Path) -> None:
    everything = b"".join(file.read_bytes() for file in unpacked.rglob("*") if file.is_file())
    assert b"mallory" not in everything
    assert b"not theirs" not in everything
    links = json.loads((unpacked / "audit" / "chain.json").read_text())["links"]
    # A short way, not the whole record.
    assert len(links) < AuditEntry.objects.count() / 2


def test_no_secret_is_in_it(held: Operation, unpacked: Path) -> None:
    everything = b"".join(file.read_bytes() for file in unpacked.rglob("*") if file.is_file())
    for hidden in (SECRET.encode(), bytes(held.request_sealed), b"Where is it?"):
        assert hidden not in everything


def test_its_page_is_read_offline_and_runs_nothing(unpacked: Path) -> None:
    page = (unpacked / "index.html").read_text()
    assert "Outcome" in page
    assert "T-17" in page
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["pack.css"]
    style = (unpacked / "pack.css").read_text()
    for part in ("<script", "javascript:", "http:", "https:", "url(", "@import"):
        assert part not in page + style


def test_exporting_is_on_record_with_the_digest_of_what_was_exported(
    held: Operation, unpacked: Path
) -> None:
    entry = AuditEntry.objects.latest("seq")
    assert (entry.actor, entry.verb) == (f"user:{person().pk} reviewer_1", "exported")
    assert entry.object == f"operation:{held.pk}"
    digests = {
        name: hashlib.sha256((unpacked / file).read_bytes()).hexdigest()
        for name, file in verify.NAMED.items()
    }
    assert entry.detail == digests | {
        "form": "evidence pack",
        "payloads": True,
        "entries": 3,
    }


# --- what is found ----------------------------------------------------------------------------


def resummed(folder: Path) -> None:
    """Make the checksums fit again, as whoever changes a file would."""
    names = [path for path in folder.rglob("*") if path.is_file() and path.name != "SHA256SUMS"]
    lines = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in names
    ]
    (folder / "SHA256SUMS").write_text("".join(lines))


def replaced(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def change_case(folder: Path) -> None:
    replaced(folder / "case.json", '"unknown"', '"acknowledged"')


def change_page(folder: Path) -> None:
    replaced(folder / "index.html", "reviewer_1", "reviewer_2")


def hide_by_style(folder: Path) -> None:
    style = folder / "pack.css"
    style.write_text(f"{style.read_text()}\ntable {{ display: none; }}\n")


def change_entry(folder: Path) -> None:
    replaced(entry_files(folder)[1], "reviewer_1", "reviewer_2")


def drop_entry(folder: Path) -> None:
    """Leave an entry out, its digest alone left in the chain, as if it were about another case."""
    file = entry_files(folder)[0]
    chain = folder / "audit" / "chain.json"
    document = json.loads(chain.read_text())
    document["shown"].remove(int(file.stem))
    chain.write_text(json.dumps(document))
    file.unlink()


def drop_entry_and_show_another_twice(folder: Path) -> None:
    """So that the number of those that are shown is the one that the export names."""
    drop_entry(folder)
    chain = folder / "audit" / "chain.json"
    document = json.loads(chain.read_text())
    document["shown"].insert(0, document["shown"][0])
    chain.write_text(json.dumps(document))


def add_entry_file(folder: Path) -> None:
    """What looks like an entry of the record to who opens the folder."""
    file = entry_files(folder)[0]
    (folder / "audit" / "999.json").write_text(file.read_text().replace("held", "refunded"))


def add_file_of_python(folder: Path) -> None:
    (folder / "statement__pycache__.html").write_text("<h1>Approved</h1>")


def change_readme(folder: Path) -> None:
    replaced(folder / "README.txt", "by reviewer_1", "by reviewer_2")


def change_entry_and_its_link(folder: Path) -> None:
    """As good as a forger can without the whole chain: the entry's own hash fits again."""
    file = entry_files(folder)[1]
    replaced(file, "reviewer_1", "reviewer_2")
    chain = folder / "audit" / "chain.json"
    document = json.loads(chain.read_text())
    (link,) = (each for each in document["links"] if each["seq"] == int(file.stem))
    link["content"] = hashlib.sha256(file.read_bytes()).hexdigest()
    link["hash"] = verify.hash_of(link)
    chain.write_text(json.dumps(document))


def pass_for_first_rule(folder: Path) -> None:
    change_entry_and_its_link(folder)
    chain = folder / "audit" / "chain.json"
    document = json.loads(chain.read_text())
    number = int(entry_files(folder)[1].stem)
    (link,) = (each for each in document["links"] if each["seq"] == number)
    link |= {"first_rule": True, "hash": link["content"]}
    chain.write_text(json.dumps(document))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (change_case, "case.json is not what was exported"),
        (change_page, "index.html is not what was exported"),
        (hide_by_style, "pack.css is not what was exported"),
        (change_entry, "does not say what its digest was made of"),
        (change_entry_and_its_link, "is not in the chain that ends with entry"),
        (drop_entry, "3 entries are about this case, and not all are here"),
        (drop_entry_and_show_another_twice, "an entry is shown twice"),
        (add_entry_file, "audit/999.json is part of no pack"),
        (add_file_of_python, "statement__pycache__.html is part of no pack"),
        (change_readme, "README.txt is not what was exported"),
        (pass_for_first_rule, "cannot be of the first rule"),
    ],
)
def test_what_was_changed_is_found_though_the_checksums_fit(
    unpacked: Path, change: Any, said: str
) -> None:
    change(unpacked)
    assert checked(unpacked)[0] == 1  # by the checksums
    resummed(unpacked)
    code, text = checked(unpacked)
    assert code == 1
    assert said in text


def test_a_file_that_was_added_or_taken_away_is_found(unpacked: Path) -> None:
    (unpacked / "more.txt").write_text("more")
    (unpacked / "README.txt").unlink()
    code, text = checked(unpacked)
    assert code == 1
    assert "more.txt was added" in text
    assert "README.txt is missing" in text


def test_a_chain_that_was_made_to_fit_ends_elsewhere(unpacked: Path) -> None:
    code, text = checked(unpacked, "--head", f"1:{'0' * 64}")
    assert code == 1
    assert "the entry that you were told" in text


def test_a_byte_that_was_damaged_on_the_way_never_breaks_the_script(
    client: Client, held: Operation, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is whole, not whole, or cannot be read, and says which."""
    whole, pack = exported(client, held), tmp_path / "pack.zip"
    for place in range(0, len(whole), 41):
        pack.write_bytes(whole[:place] + bytes([whole[place] ^ 0x41]) + whole[place + 1 :])
        code = verify.main([str(pack)])
        assert capsys.readouterr().out.startswith(("WHOLE", "NOT WHOLE", "CANNOT BE READ")[code])


def test_what_is_no_pack_cannot_be_read(tmp_path: Path) -> None:
    shutil.copy(verify.__file__, tmp_path)
    assert checked(tmp_path)[0] == 2


def test_an_entry_that_was_changed_in_the_database_is_found(
    client: Client, held: Operation, tmp_path: Path
) -> None:
    tamper("reconciliation_auditentry", "actor = 'user:9 mallory'", "verb = 'decided'")
    with zipfile.ZipFile(io.BytesIO(exported(client, held))) as archive:
        archive.extractall(tmp_path)
    assert checked(tmp_path / f"operation-{held.pk}")[0] == 1


def test_entries_of_the_first_rule_are_what_they_say_and_their_place_is_not_proven(
    client: Client, destination: RunningDestination, tmp_path: Path
) -> None:
    ready_provider("desk", destination.url)
    others(3)
    operation = held_operation(destination)
    as_of_first_rule()
    decide(open_hold_of(operation), KEEP_HOLDING)
    assert first_broken_entry() is None
    client.force_login(person())
    with zipfile.ZipFile(io.BytesIO(exported(client, operation))) as archive:
        archive.extractall(tmp_path)
    code, said = checked(tmp_path / f"operation-{operation.pk}")
    assert code == 0
    assert "1 of them are of the first rule: nothing here proves their place." in said


def as_of_first_rule() -> None:
    """The record as it was written before single entries could be placed."""
    previous = ""
    for entry in AuditEntry.objects.order_by("seq"):
        entry.salt, entry.previous_hash = "", previous
        previous = hash_of(entry)
        links = f"salt = '', skip_hash = '', previous_hash = '{entry.previous_hash}'"
        tamper("reconciliation_auditentry", f"{links}, hash = '{previous}'", f"seq = {entry.seq}")


# --- the document, the command ----------------------------------------------------------------


def test_the_case_is_exported_as_one_document(client: Client, held: Operation) -> None:
    document = json.loads(exported(client, held, "operation_export"))
    assert document["case"]["operation"]["id"] == str(held.pk)
    assert [entry["verb"] for entry in document["audit"]] == ["held", "decided", "exported"]


def test_the_command_writes_the_same_file(held: Operation, tmp_path: Path) -> None:
    target = tmp_path / "pack.zip"
    call_command("evidence", str(held.pk), by="reviewer_1", to=target, stdout=io.StringIO())
    assert verify.main([str(target)]) == 0
    assert AuditEntry.objects.latest("seq").actor.endswith("reviewer_1")
    if os.name == "posix":
        assert target.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="cannot be written"):
        call_command("evidence", str(held.pk), by="reviewer_1", to=target)
    person("stranger_1")
    with pytest.raises(CommandError, match="there is no operation"):
        call_command("evidence", str(held.pk), by="stranger_1", to=tmp_path / "other.zip")


# --- only what may be seen --------------------------------------------------------------------


@pytest.mark.parametrize("address", ["operation_evidence", "operation_export"])
def test_another_s_case_is_not_there_and_nothing_is_put_on_record(
    client: Client, held: Operation, address: str
) -> None:
    before = AuditEntry.objects.count()
    url = reverse(address, args=[held.pk])
    knows_nothing = Client()
    knows_nothing.force_login(stranger())
    assert knows_nothing.post(url).status_code == HTTPStatus.NOT_FOUND
    assert Client().post(url).status_code == HTTPStatus.FOUND
    # What machines fetch exports nothing.
    assert client.get(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert client.head(url).status_code == HTTPStatus.METHOD_NOT_ALLOWED
    assert AuditEntry.objects.count() == before


def test_what_was_sent_and_said_is_for_those_who_may_see_payloads(
    destination: RunningDestination, tmp_path: Path
) -> None:
    provider = ready_provider("payments", destination.url)
    destination.client.arm("mismatched_receipt")
    operation = Operation.objects.get(run=advanced(started_run("refund")))
    assert provider.default_queue is not None
    looks = Client()
    looks.force_login(reader(provider.default_queue))
    with zipfile.ZipFile(io.BytesIO(exported(looks, operation))) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / f"operation-{operation.pk}"
    assert checked(folder)[0] == 0
    everything = b"".join(file.read_bytes() for file in folder.rglob("*") if file.is_file())
    assert b"12501" not in everything
    case = json.loads((folder / "case.json").read_text())
    assert "parameters_redacted" not in case["operation"]
    assert case["payloads"].startswith("left out")


def test_what_people_said_in_a_queue_is_for_those_who_may_see_that(
    client: Client, held: Operation
) -> None:
    comment(open_hold_of(held), person(), "The desk calls back at nine.", uuid4())
    sees_runs_alone = Client()
    user = person("auditor_1")
    assign_perm("workflows.view_tenant", user, held.run.tenant)
    sees_runs_alone.force_login(user)
    url = reverse("operation_export", args=[held.pk])
    for reads, told in ((client, True), (sees_runs_alone, False)):
        answer: Any = reads.post(url)
        assert (b"calls back at nine" in b"".join(answer)) is told


def test_markup_of_others_is_text_on_its_page(client: Client, held: Operation) -> None:
    tamper("reconciliation_operation", f"summary = '{MARKUP}'", f"id = '{held.pk}'")
    with zipfile.ZipFile(io.BytesIO(exported(client, held))) as archive:
        page = archive.read(f"operation-{held.pk}/index.html").decode()
    assert MARKUP not in page
    assert "&lt;img src=x" in page
