"""A step that leaves a transaction open has failed: nothing after it would ever be committed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection, transaction

from tests.claiming import ONCE, RETRIED, acts, attempts, ready_run
from tests.factories import advanced, tenant
from workflows.models import Tenant
from workflows.services.results import result_of
from workflows.services.run_view import RunView

pytestmark = pytest.mark.usefixtures("committed_db")


def begin() -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")


def enter() -> None:
    transaction.atomic().__enter__()


def by_hand() -> None:
    transaction.set_autocommit(False)


@pytest.mark.parametrize("opens", [begin, enter, by_hand])
@pytest.mark.parametrize("raises", [False, True])
def test_what_is_left_open_is_undone_and_the_step_has_failed(
    opens: Callable[[], None], raises: bool
) -> None:
    def act(_: RunView) -> int:
        opens()
        Tenant.objects.update(name="half done")
        return 1 // (not raises)

    run = advanced(ready_run(RETRIED, act))
    assert attempts(run) == [("act", 1, "failed")]
    said = "ZeroDivisionError" if raises else "it left a transaction open, which was undone"
    assert said in run.failure["message"]
    assert not Tenant.objects.filter(name="half done").exists()

    # The thread goes on with a session of its own.
    acts["act"] = lambda _: 2
    run = advanced(run)
    connection.close()
    assert (result_of(run), attempts(run)[-1]) == (2, ("after", 1, "committed"))


def test_a_transaction_that_has_ended_is_none_of_ours() -> None:
    def act(_: RunView) -> str:
        with transaction.atomic():
            return tenant("done").slug

    assert result_of(advanced(ready_run(ONCE, act))) == "done"
