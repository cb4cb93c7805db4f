"""Secrets: what is kept and logged of credentials and payloads, and the keys that seal them."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from uuid import uuid4

import pytest
import structlog
from cryptography.fernet import InvalidToken
from django.contrib.auth import get_user_model
from django.db import IntegrityError, connection, transaction
from django.db.models.functions import Now
from psycopg import sql
from pydantic import BaseModel
from pytest_django import Settings

from reconciliation.models import AuditEntry, CaseNote, Operation, Provider, Transmission
from reconciliation.sealing import seal, unseal
from reconciliation.services.reconcile import reconcile
from tests.destination import RunningDestination
from tests.factories import advanced, ready_provider, settled, started_run, switched, tenant
from tests.scripted import Scripted
from tests.sending import parking_contract, posts, the_operation
from workflows.core.definitions import Workflow
from workflows.registry import registry
from workflows.services.run_view import RunView
from workflows.services.runs import start

pytestmark = pytest.mark.django_db

CREDENTIAL, PAYLOAD = "sk_live_51Nw0tAr3alKey", "the private words of a customer"
SENT = "Category: general. Urgent: no."  # what the write says, and nobody may see
# Where inputs and outputs are kept, for those who may see payloads.
PAYLOADS_BELONG_IN = {"workflows_run.input", "workflows_attempt.output"}


def found_in_database(secret: str) -> set[str]:
    """The columns of every table in which `secret` can be read."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'public'"
        )
        columns = cursor.fetchall()
        found = set()
        for table, column, kind in columns:
            shown = "encode({}, 'escape')" if kind == "bytea" else "{}::text"
            statement = sql.SQL(
                f"SELECT EXISTS (SELECT FROM {{}} WHERE position(%s in {shown}) > 0)"  # noqa: S608
            )
            cursor.execute(
                statement.format(sql.Identifier(table), sql.Identifier(column)), [secret]
            )
            if cursor.fetchone()[0]:
                found.add(f"{table}.{column}")
    return found


def test_a_row_that_the_database_refuses_is_in_no_log_line(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Promise P9: what is refused is named with all its values, several errors deep."""
    text = f"{PAYLOAD}\n\nand more of {PAYLOAD}"
    with pytest.raises(IntegrityError, match=PAYLOAD) as refused, transaction.atomic():
        CaseNote.objects.create(kind="comment", text=text, token=uuid4())
    broken = ValueError("a later one")
    broken.__cause__ = refused.value
    structlog.get_logger(__name__).error("page.broken", exc_info=broken)
    assert "not-null constraint" in caplog.text
    assert "a later one" in caplog.text
    assert PAYLOAD not in caplog.text


def echo_of(scripted: Scripted) -> Callable[[BaseHTTPRequestHandler], bytes]:
    """What a careless provider says of a request that it refuses."""

    def echo(request: BaseHTTPRequestHandler) -> bytes:
        said = f"{request.headers} {scripted.sent.decode()}"
        error = {"type": "authentication_error", "message": said, "code": request.path}
        return json.dumps({"error": error}).encode()

    return echo


@pytest.mark.parametrize(
    ("status", "state"), [(401, "failed"), (500, "held"), (201, "completed"), (302, "held")]
)
def test_neither_the_credential_nor_what_was_sent_is_kept_or_logged(
    scripted: Scripted,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
    status: int,
    state: str,
) -> None:
    """A27, promise P9: a provider that echoes the request, with debug logging on."""
    caplog.set_level("DEBUG")
    scripted.status = status
    scripted.headers |= {"WWW-Authenticate": f"Bearer {CREDENTIAL}", "X-Body": PAYLOAD}
    if status != 201:
        scripted.answers = echo_of(scripted)
    ready_provider(
        "desk", scripted.url, adapter="http", credential_sealed=seal(CREDENTIAL.encode())
    )
    run = settled(started_run("ticket_triage", subject="Hello", body=PAYLOAD))
    assert run.state == state
    assert len(scripted.requests) == 1
    assert found_in_database(CREDENTIAL) == set()
    assert found_in_database(CREDENTIAL[:12]) == set()
    assert SENT in scripted.sent.decode()
    assert found_in_database(SENT) == set()
    assert found_in_database(PAYLOAD) <= PAYLOADS_BELONG_IN
    said = caplog.text + capfd.readouterr().err
    for secret in (CREDENTIAL[:12], SENT, PAYLOAD):
        assert secret not in said


def test_what_people_may_not_see_is_stored_as_a_digest_alone(
    destination: RunningDestination,
) -> None:
    ready_provider("desk", destination.url, visible_parameters=["ticket"])
    advanced(started_run("ticket_triage", body=PAYLOAD))
    operation = the_operation()
    assert operation.parameters_redacted == {"ticket": "T-17", "body": "[not shown]"}
    assert operation.parameters_digest
    assert AuditEntry.objects.filter(detail__icontains=PAYLOAD).count() == 0


def test_a_field_that_differs_is_told_without_its_value(
    destination: RunningDestination,
) -> None:
    ready_provider("payments", destination.url, visible_parameters=["order"])
    destination.client.arm("mismatched_receipt", field="amount")
    advanced(started_run("refund"))
    (difference,) = the_operation().evidence.get(kind="conflict").differences
    assert difference == {"field": "amount", "intended": "[not shown]", "found": "[not shown]"}


def test_a_password_in_an_address_is_not_copied_into_the_ledger(scripted: Scripted) -> None:
    address = scripted.url.replace("http://", f"http://app:{CREDENTIAL}@")
    ready_provider("desk", address)
    advanced(started_run("ticket_triage"))
    assert found_in_database(CREDENTIAL) <= {"reconciliation_provider.base_url"}


# --- errors of steps --------------------------------------------------------------------------

leaking = Workflow("tests.leaking")


@leaking.step(on_failure="hold")
def connect(run: RunView) -> None:
    raise ConnectionError(f"could not connect to postgres://app:{CREDENTIAL}@db.internal/orders")


def test_a_password_in_an_error_of_a_step_is_not_kept() -> None:
    """A27: a database error with the connection string in it."""
    registry.add(leaking)
    assert advanced(start("tests.leaking", {}, tenant=tenant())).state == "held"
    assert found_in_database(CREDENTIAL) == set()


talkative = Workflow("tests.talkative")


class Card(BaseModel):
    number: int


def store_twice() -> None:
    for _ in range(2):
        with transaction.atomic():
            get_user_model().objects.create_user(PAYLOAD)


def read_wrongly() -> None:
    Card.model_validate({"number": PAYLOAD})


@talkative.step(on_failure="hold")
def talk(run: RunView) -> None:
    {"store_twice": store_twice, "read_wrongly": read_wrongly}[run.input["act"]]()


@pytest.mark.parametrize("act", ["store_twice", "read_wrongly"])
def test_a_private_value_in_an_error_of_a_step_is_not_kept(act: str) -> None:
    """P9: what databases and validators add to their errors is the value itself."""
    registry.add(talkative)
    assert advanced(start("tests.talkative", {"act": act}, tenant=tenant())).state == "held"
    assert found_in_database(PAYLOAD) <= {"auth_user.username"}


# --- keys that are gone -----------------------------------------------------------------------


def test_what_cannot_be_unsealed_is_not_written_down_as_sent(
    destination: RunningDestination, settings: Settings
) -> None:
    ready_provider("desk", destination.url, dispatch="paused")
    run = advanced(started_run("ticket_triage"))
    switched(Provider.objects.get(), "on")
    Operation.objects.update(due_at=Now())
    reconcile(the_operation().pk)
    settings.ROMULUS_KEYS = ["a-key-that-has-sealed-nothing"]
    run = advanced(run)
    assert run.state == "held"
    assert not Transmission.objects.exists()


def test_an_old_key_still_opens_what_it_sealed(
    destination: RunningDestination, settings: Settings
) -> None:
    ready_provider("payments", destination.url, contract_version=parking_contract())
    destination.client.arm("drop_before")
    run = advanced(started_run("refund"))
    settings.ROMULUS_KEYS = ["a-new-key", *settings.ROMULUS_KEYS]
    assert settled(run).state == "completed"
    first, second = posts(destination)
    assert first.body == second.body


def test_a_key_that_is_gone_opens_nothing() -> None:
    with pytest.raises(InvalidToken):
        unseal(b"nothing that was ever sealed")
