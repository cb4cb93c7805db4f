"""When a step is tried again, and when that is over."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from workflows.core.errors import PermanentError

# Tries that end because the worker died count on their own: a step that kills its workers must
# end in a hold, not in a loop (architecture, section 5).
MAX_LOST_ATTEMPTS = 3


@dataclass(frozen=True)
class RetryPolicy:
    """How often a step is tried, and how long it rests between tries.

    `attempts` counts every try, the first included. The rest doubles from `first_delay` up to
    `longest_delay`, of which `jitter` (0 to 1) is random, so that a crowd does not come back at
    the same moment.
    """

    attempts: int = 1
    first_delay: timedelta = timedelta(seconds=1)
    longest_delay: timedelta = timedelta(minutes=5)
    jitter: float = 0.2

    def delay(self, failures: int, random: float) -> timedelta | None:
        """Return the rest before the next try, or None when the tries are spent.

        Args:
            failures: tries that ended in failure so far, at least 1.
            random: a number from 0 to 1 drawn by the caller; the core draws none.
        """
        if failures >= self.attempts:
            return None
        full = min(
            self.first_delay.total_seconds() * 2.0 ** min(failures - 1, 30),
            self.longest_delay.total_seconds(),
        )
        return timedelta(seconds=full * (1 - self.jitter * random))


def is_permanent(error: BaseException) -> bool:
    """Return whether trying again cannot help, because the step's own code said so."""
    return isinstance(error, PermanentError)
