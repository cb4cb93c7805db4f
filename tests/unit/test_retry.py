"""When a step is tried again: the rest doubles, is bounded, and a part of it is random."""

from __future__ import annotations

from datetime import timedelta

import pytest

from workflows.core.errors import PermanentError, StepError
from workflows.core.retry import MAX_LOST_ATTEMPTS, RetryPolicy, is_permanent

EXACT = RetryPolicy(
    attempts=100,
    first_delay=timedelta(seconds=2),
    longest_delay=timedelta(minutes=1),
    jitter=0,
)
JITTERED = RetryPolicy(attempts=5, first_delay=timedelta(seconds=10), jitter=0.25)


def seconds(policy: RetryPolicy, failures: int, random: float = 0.0) -> float | None:
    delay = policy.delay(failures, random)
    return None if delay is None else delay.total_seconds()


@pytest.mark.parametrize(
    ("failures", "expected"),
    [
        (1, 2),  # 2 * 2**0
        (2, 4),  # 2 * 2**1
        (3, 8),  # 2 * 2**2
        (5, 32),  # 2 * 2**4
        (6, 60),  # 2 * 2**5 = 64, no longer than 60
        (7, 60),
        (99, 60),  # 2 * 2**98 never becomes a number that a timedelta cannot hold
    ],
)
def test_the_rest_doubles_up_to_the_longest(failures: int, expected: float) -> None:
    assert seconds(EXACT, failures) == expected


@pytest.mark.parametrize(
    ("failures", "random", "expected"),
    [
        (1, 0.0, 10.0),  # 10 * (1 - 0.25 * 0)
        (1, 1.0, 7.5),  # 10 * (1 - 0.25 * 1)
        (1, 0.5, 8.75),  # 10 * (1 - 0.25 * 0.5)
        (3, 0.2, 38.0),  # 40 * (1 - 0.25 * 0.2)
    ],
)
def test_the_random_part_only_shortens_it(failures: int, random: float, expected: float) -> None:
    assert seconds(JITTERED, failures, random) == pytest.approx(expected)


@pytest.mark.parametrize("random", [0.0, 0.25, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("failures", [1, 2, 3, 4])
def test_the_random_part_stays_in_its_bounds(failures: int, random: float) -> None:
    full = 10 * 2 ** (failures - 1)
    rest = seconds(JITTERED, failures, random)
    assert rest is not None
    assert 0.75 * full <= rest <= full


@pytest.mark.parametrize(
    ("attempts", "failures", "again"),
    [
        (1, 1, False),  # one try, and it failed
        (2, 1, True),
        (2, 2, False),
        (4, 3, True),
        (4, 4, False),
        (4, 5, False),  # more failures than tries: a policy that was shortened meanwhile
    ],
)
def test_the_first_try_counts(attempts: int, failures: int, again: bool) -> None:
    assert (seconds(RetryPolicy(attempts=attempts), failures) is not None) is again


def test_a_policy_that_says_nothing_tries_once() -> None:
    assert RetryPolicy().delay(1, 0.0) is None


class OutOfStock(PermanentError):
    """There is none left."""


@pytest.mark.parametrize(
    ("error", "permanent"),
    [
        (PermanentError("no"), True),
        (OutOfStock(), True),
        (StepError("no"), False),
        (ValueError("no"), False),
        (TimeoutError(), False),
    ],
)
def test_only_the_step_itself_says_that_trying_again_cannot_help(
    error: Exception, permanent: bool
) -> None:
    assert is_permanent(error) is permanent


def test_a_step_may_lose_some_workers_before_a_person_is_asked() -> None:
    # One loss is a machine that was replaced; as many as this point at the step itself.
    assert MAX_LOST_ATTEMPTS == 3
