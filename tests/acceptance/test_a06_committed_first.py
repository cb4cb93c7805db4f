"""Case A06 (c) and (d): success is answered only after the event is committed."""

from __future__ import annotations

import http.client
import threading
from pathlib import Path

import pytest
from django.db import connection, transaction

from tests.acceptance.hooking import Hooks
from tests.acceptance.web import web
from tests.delivering import paid, signed, source
from tests.waiting import LIMIT_SECONDS, wait_for
from tests.workers import environment_of
from workflows.core.sources import Scheme
from workflows.models import Event

pytestmark = pytest.mark.processes


def inserts_that_wait() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks "
            "WHERE NOT granted AND relation = 'workflows_event'::regclass"
        )
        number: int = cursor.fetchone()[0]
    return number


def test_no_success_is_answered_while_the_insert_is_blocked(
    committed_db: str, tmp_path: Path
) -> None:
    """(c): the sender gets no answer, then 503; what it delivers again is taken once."""
    source()
    body = paid()
    headers = signed(Scheme.STANDARD_WEBHOOKS, body)
    statuses: list[int] = []
    with web(environment_of(committed_db), tmp_path) as console:
        hooks = Hooks(console, tmp_path / "web.log")
        sending = threading.Thread(
            target=lambda: statuses.append(hooks.post("shop", body, headers).status)
        )
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("LOCK TABLE workflows_event IN SHARE MODE")
            sending.start()
            wait_for(inserts_that_wait, "the insert is blocked")
            assert statuses == []
            sending.join(timeout=LIMIT_SECONDS)
            assert statuses == [503]
        assert not Event.objects.exists()
        assert hooks.post("shop", body, headers).status == 202
        assert hooks.post("shop", body, headers).status == 200
    assert Event.objects.get().duplicates == 1


@pytest.mark.parametrize(("point", "stored"), [("event_stored", False), ("after_event", True)])
def test_killed_around_the_commit_the_first_try_fails_and_the_second_is_the_same_event(
    committed_db: str, tmp_path: Path, point: str, stored: bool
) -> None:
    """(d): killed before the commit nothing is stored; after it the repeat is recognised."""
    source()
    body = paid()
    headers = signed(Scheme.STANDARD_WEBHOOKS, body)
    dying = environment_of(committed_db) | {"ROMULUS_FAILPOINTS": point}
    with web(dying, tmp_path) as console:
        hooks = Hooks(console, tmp_path / "web.log")
        with pytest.raises((http.client.HTTPException, ConnectionError)):
            hooks.post("shop", body, headers)
    assert Event.objects.exists() == stored
    (tmp_path / "again").mkdir()
    with web(environment_of(committed_db), tmp_path / "again") as console:
        hooks = Hooks(console, tmp_path / "again" / "web.log")
        assert hooks.post("shop", body, headers).status == (200 if stored else 202)
    assert Event.objects.get().duplicates == int(stored)
