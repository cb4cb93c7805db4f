"""Named points at which this very process dies by SIGKILL; off unless a setting names them.

`ROMULUS_FAILPOINTS=before_checkpoint` dies at the first passage, `before_checkpoint@create_refund`
only for that step. A name that does not exist is refused at start, so that a kill test cannot
pass because of a misspelling.
"""

from __future__ import annotations

import os
import signal

from django.conf import settings

KNOWN = frozenset(
    {
        "before_claim",
        "after_claim",
        "before_checkpoint",
        "after_checkpoint",
        "before_release",
        "after_release",
        "before_open",
        "after_open",
        "before_dispatch",
        "after_dispatch",  # the claim to send is committed, no byte has left
        "after_answer",  # the provider has answered, nothing is recorded
        "before_settle",
        "after_settle",
    }
)


def failpoint(name: str, where: str = "") -> None:
    """Die here if the settings say so. `where` is the step's name."""
    if name not in KNOWN:
        raise ValueError(f"unknown failpoint {name!r}")
    armed = settings.ROMULUS_FAILPOINTS
    if armed and (name in armed or f"{name}@{where}" in armed):
        os.kill(os.getpid(), signal.SIGKILL)


def check_names(armed: list[str]) -> None:
    """Raise `ValueError` for a failpoint that does not exist."""
    unknown = sorted({entry.split("@")[0] for entry in armed} - KNOWN)
    if unknown:
        raise ValueError(f"ROMULUS_FAILPOINTS names {unknown}; known: {sorted(KNOWN)}")
