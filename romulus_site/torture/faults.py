"""What the destination does to the writes of a run, and the end that this alone leads to. Pure.

A fault is armed for the one operation that it is drawn for, once. That the worker which sends is
struck as well is not in here: `checks.ends` works out what that can lead to.
"""

from __future__ import annotations

from dataclasses import dataclass

COMPLETED, FAILED = "completed", "failed"


def held(reason: str) -> str:
    """The end of a run that is held for `reason`."""
    return f"held:{reason}"


@dataclass(frozen=True)
class Fault:
    """One fault, in the destination's own grammar.

    Attributes:
        end: how the run ends when nothing else happens to it.
        lossy: the answer does not come, or proves nothing.
        effects: how many resources are there after it, once the run is over.
    """

    text: str
    end: str = COMPLETED
    lossy: bool = True
    effects: int = 1


NO_FAULT = Fault("", lossy=False)

# The contract's timeout is 3 seconds (scene.py).
TOO_LATE = "apply_then_delay;seconds=4"

KEYED = (
    Fault("apply_then_drop;close=rst"),
    Fault("apply_then_drop;close=fin"),
    Fault("drop_before"),
    Fault("never_apply;seconds=0.3"),
    Fault("truncated_body"),
    Fault("proxy_502"),
    Fault("proxy_502;applied=false"),
    Fault("redirect"),
    Fault("key_in_flight"),
    Fault(TOO_LATE),
    Fault("slow;seconds=0.7", lossy=False),
    Fault("error_before;status=429", lossy=False),
    Fault("error_before;status=503"),
    Fault("error_after;status=500;stored=false"),
    # The key answers for ever with the error that was stored under it.
    Fault("error_after;status=500", held("budget_spent")),
    Fault("error_before;status=402", FAILED, lossy=False, effects=0),
    Fault("postcondition;status=failed", held("postcondition_failed"), lossy=False),
    Fault("mismatched_receipt", held("conflict")),
)
LOOKUP = (
    Fault("apply_then_drop;close=rst"),
    Fault("truncated_body"),
    Fault("proxy_502"),
    Fault("error_after;status=500"),
    Fault(TOO_LATE),
    Fault("slow;seconds=0.7", lossy=False),
    Fault("error_before;status=429", lossy=False),
    Fault("drop_before", held("absence_not_proof"), effects=0),
    Fault("never_apply;seconds=0.3", held("absence_not_proof"), effects=0),
    Fault("error_before;status=400", FAILED, lossy=False, effects=0),
    Fault("postcondition;status=failed", held("postcondition_failed"), lossy=False),
    Fault("mismatched_receipt", held("conflict")),
)
BLIND = (
    Fault("apply_then_drop;close=fin", held("unguarded")),
    Fault("drop_before", held("unguarded"), effects=0),
    Fault("truncated_body", held("unguarded")),
    Fault("slow;seconds=0.7", lossy=False),
    Fault("error_before;status=429", lossy=False),
    Fault("error_before;status=400", FAILED, lossy=False, effects=0),
)
OF_PERSONALITY = {"keyed": KEYED, "lookup": LOOKUP, "blind": BLIND}
