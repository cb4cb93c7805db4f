"""A worker's listener: what ends it, and what does not."""

from __future__ import annotations

import pytest
from celery import current_app
from kombu.exceptions import OperationalError


class Ended(BaseException):
    """The test has seen enough."""


def listener(lost: list[Exception]) -> object:
    """A worker's listener whose connection is lost in each of these ways, one after the other."""
    worker = current_app.WorkController(pool="solo", concurrency=1, queues=["advance"])
    listener = worker.consumer

    def connect(_: object) -> None:
        raise lost.pop(0) if lost else Ended

    listener.blueprint.start = connect
    listener.blueprint.restart = lambda _: None
    return listener


@pytest.mark.django_db
def test_a_broker_that_goes_away_while_it_comes_back_does_not_end_the_worker() -> None:
    lost: list[Exception] = [OperationalError("lost while it was made"), OperationalError("again")]
    with pytest.raises(Ended):
        listener(lost).start()  # type: ignore[attr-defined]
    assert lost == []
