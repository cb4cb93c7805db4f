"""What is known about an operation when its next move is decided, and the moves there are."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from reconciliation.core.contracts import Contract, Meaning, Retry
from reconciliation.core.states import EvidenceKind, OperationState, Purpose, TransmissionState


class Dispatch(StrEnum):
    ON = "on"
    PAUSED = "paused"
    OFF = "off"


@dataclass(frozen=True)
class Sent:
    """One transmission, as a fact.

    `in_flight_until`: the moment after which no byte of it can still leave or arrive.
    """

    number: int
    state: TransmissionState
    started_at: datetime
    in_flight_until: datetime
    meaning: Meaning = Meaning.UNKNOWN
    resolves_earlier: bool = False
    retry: Retry = Retry.NEVER
    retry_after_at: datetime | None = None

    @property
    def may_have_effect(self) -> bool:
        """Also an acknowledged one, until evidence speaks for it."""
        return self.state in (
            TransmissionState.SENDING,
            TransmissionState.UNKNOWN,
            TransmissionState.ACKNOWLEDGED,
        )


@dataclass(frozen=True)
class Known:
    """One piece of evidence, as a fact.

    Attributes:
        completes: it proves that the effect is there and is the one that was meant.
        postcondition: the result was checked: met, not met, or None: not checked by this.
        denies: a person states that the effect is not there.
    """

    kind: EvidenceKind
    observed_at: datetime
    completes: bool = False
    resource: str | None = None
    postcondition: bool | None = None
    denies: bool = False
    retry_after_at: datetime | None = None


@dataclass(frozen=True)
class Facts:
    """Everything that `decide` looks at. Times are the database's.

    Attributes:
        replay_not_after: no same-key send may be under way past this; None: no window.
        missing: what the provider lacks before anything may be sent to it, in words.
        elsewhere: the provider is set up for another account, address or credential than the one
            that the operation's key was made for.
        replay_trusted, look_up_trusted: the contract's claim was shown by a rehearsal, or an
            owner has accepted it in writing.
        contradicted: the provider was seen to break its contract.
        authorised: the boundary allows this very write now.
        approved_once: an approval, which counts for one write, was given for this very operation.
        send_again: a person has decided that it be sent again, at this time.
        cancelling: the run's end was asked for: what was sent is settled, nothing more is sent.
    """

    contract: Contract
    state: OperationState
    opened_at: datetime
    sent: tuple[Sent, ...] = ()
    known: tuple[Known, ...] = ()
    replay_not_after: datetime | None = None
    dispatch: Dispatch = Dispatch.ON
    missing: tuple[str, ...] = ()
    elsewhere: bool = False
    replay_trusted: bool = True
    look_up_trusted: bool = True
    contradicted: bool = False
    authorised: bool = True
    precondition_holds: bool = True
    approved_once: bool = False
    send_again: datetime | None = None
    cancelling: bool = False


class HoldReason(StrEnum):
    NOT_READY = "not_ready"
    AUTHORISATION_LAPSED = "authorisation_lapsed"
    PRECONDITION_GONE = "precondition_gone"
    UNGUARDED = "unguarded"
    WINDOW_CLOSING = "window_closing"
    WINDOW_OVER = "window_over"
    NOT_PROVEN = "not_proven"
    BUDGET_SPENT = "budget_spent"
    TIME_SPENT = "time_spent"
    REFUSED_TOO_OFTEN = "refused_too_often"
    UNREACHABLE = "unreachable"
    ABSENCE_NOT_PROOF = "absence_not_proof"
    LOOK_UP_UNAVAILABLE = "look_up_unavailable"
    WINDOW_OVER_UNASKED = "window_over_unasked"
    REFUSED_LATER = "refused_later"
    KEY_MISMATCH = "key_mismatch"
    ALREADY_EXISTS = "already_exists"
    CONFLICT = "conflict"
    CONTRACT_CONTRADICTED = "contract_contradicted"
    POSTCONDITION_FAILED = "postcondition_failed"
    NOT_VERIFIABLE = "not_verifiable"
    RUN_CANCELLED = "run_cancelled"


@dataclass(frozen=True)
class Sentence:
    """What a hold says to people: what is known, what is not, and what would settle it."""

    known: str
    unknown: str
    settles: str

    def __str__(self) -> str:
        return " ".join(part for part in (self.known, self.unknown) if part)


HOLD_SENTENCES: dict[HoldReason, Sentence] = {
    HoldReason.NOT_READY: Sentence(
        "Nothing more is sent: the provider is not ready for writes.",
        "",
        "Setting up what is missing, then sending.",
    ),
    HoldReason.AUTHORISATION_LAPSED: Sentence(
        "Nothing more is sent: this write is not authorised any more.",
        "",
        "A new authorisation of the same write.",
    ),
    HoldReason.PRECONDITION_GONE: Sentence(
        "Nothing more is sent: what had to be true before this write is not true now.",
        "",
        "Someone who knows why it changed.",
    ),
    HoldReason.UNGUARDED: Sentence(
        "It was sent and no usable answer came. This provider offers no key that guards a second "
        "send, and no way to look it up.",
        "It may have happened once, or not at all.",
        "Someone who can see the result at the provider.",
    ),
    HoldReason.WINDOW_CLOSING: Sentence(
        "It was sent and no usable answer came, and dispatch is not on. The time in which the "
        "provider remembers the key ends soon: until then a repeat can have one effect at most.",
        "It may have happened once, or not at all.",
        "Turning dispatch on and sending it once more before that time, a record at the provider, "
        "or someone who can see the result there.",
    ),
    HoldReason.WINDOW_OVER: Sentence(
        "It was sent and no usable answer came. The time in which the provider remembers the key "
        "is over, or nearly.",
        "The key may be gone; a send with it could happen a second time.",
        "A record at the provider, or someone who can see the result there.",
    ),
    HoldReason.NOT_PROVEN: Sentence(
        "It was sent and no usable answer came. What the provider promises about repeats and "
        "look-ups was never shown here, and nobody has accepted it in writing.",
        "It may have happened once, or not at all.",
        "A rehearsal against the provider's sandbox, or someone who can see the result.",
    ),
    HoldReason.BUDGET_SPENT: Sentence(
        "It was sent as often as Romulus may by itself, without a usable answer.",
        "It may have happened once, or not at all.",
        "A record at the provider, or a decision to send it once more.",
    ),
    HoldReason.TIME_SPENT: Sentence(
        "It was sent and no usable answer came, and the time in which Romulus looks for proof by "
        "itself is over.",
        "It may have happened once, or not at all.",
        "A record at the provider, or someone who can see the result there.",
    ),
    HoldReason.REFUSED_TOO_OFTEN: Sentence(
        "The provider refused it each time, as often as it may be sent. Nothing changed there.",
        "",
        "The provider taking requests again, then sending it once more.",
    ),
    HoldReason.UNREACHABLE: Sentence(
        "Nothing was sent: the provider could not be reached.",
        "",
        "The provider being reachable again, then sending.",
    ),
    HoldReason.ABSENCE_NOT_PROOF: Sentence(
        "The provider shows no record of it. That alone proves nothing: a record can appear late.",
        "It may still appear.",
        "A record at the provider, or someone who knows that it was not done.",
    ),
    HoldReason.LOOK_UP_UNAVAILABLE: Sentence(
        "It was sent and no usable answer came, and the provider could not be asked.",
        "It may have happened once, or not at all.",
        "The provider answering again, or someone who can see the result there.",
    ),
    HoldReason.WINDOW_OVER_UNASKED: Sentence(
        "It was sent and no usable answer came. The provider could not be asked, and the time in "
        "which it remembers the key is over, or nearly.",
        "The key may be gone; a send with it could happen a second time.",
        "The provider answering again, or someone who can see the result there.",
    ),
    HoldReason.REFUSED_LATER: Sentence(
        "A later send was refused. That says nothing about the one before it.",
        "The earlier send may have happened once, or not at all.",
        "A record at the provider, or someone who can see the result there.",
    ),
    HoldReason.KEY_MISMATCH: Sentence(
        "The provider says that this key came with other parameters before.",
        "A request with this key has reached it; whether it took effect is not known.",
        "The provider's record of that key.",
    ),
    HoldReason.ALREADY_EXISTS: Sentence(
        "The provider says that a thing of this name exists already.",
        "This write may have made it, or something else did.",
        "The provider's record of it, or someone who can see who made it.",
    ),
    HoldReason.CONFLICT: Sentence(
        "What the provider shows does not fit what was intended, or its records disagree.",
        "The effect that was meant may be there, or not.",
        "Someone who can say which record is right.",
    ),
    HoldReason.CONTRACT_CONTRADICTED: Sentence(
        "The provider was seen to break what it documents about repeats, so nothing is repeated.",
        "It may have happened once, or not at all.",
        "A record at the provider, or a review of its contract.",
    ),
    HoldReason.POSTCONDITION_FAILED: Sentence(
        "It took effect, and the result is not as it should be.",
        "",
        "Someone who can mend the result, or accept it.",
    ),
    HoldReason.RUN_CANCELLED: Sentence(
        "The run was cancelled while the outcome of this write was not known, so nothing more is "
        "sent.",
        "It may have happened once, or not at all.",
        "A record at the provider, or someone who can see the result there.",
    ),
    HoldReason.NOT_VERIFIABLE: Sentence(
        "It took effect, and its result could not be checked.",
        "The result may be as it should be, or not.",
        "The provider answering again, or someone who has seen the result.",
    ),
}


# Not decided on the way of an operation: it was settled, and its run had gone on, when a record
# came that contradicts that. Somebody has to look, and nothing is moved by it.
CONFLICT_LATER = "conflict_later"
LATER = Sentence(
    "It was settled, and after that a record was found that does not fit that, or a second one.",
    "The effect may be there twice, or be another one than was meant.",
    "Someone who can say which record is right, and undo the other one at the provider.",
)


class WaitReason(StrEnum):
    IN_FLIGHT = "in_flight"
    PAUSE = "pause"
    LOOK_UP_LATER = "look_up_later"
    AT_PACE = "at_pace"
    VERIFY_LATER = "verify_later"
    DISPATCH = "dispatch"


WAIT_SENTENCES: dict[WaitReason, str] = {
    WaitReason.IN_FLIGHT: "A send may still be on its way; until it cannot be, nothing is sent.",
    WaitReason.PAUSE: "The next send is due after a pause.",
    WaitReason.LOOK_UP_LATER: "The outcome is not known yet; the provider is asked again soon.",
    WaitReason.AT_PACE: "It is asked about in its turn, at the provider's pace.",
    WaitReason.VERIFY_LATER: "It took effect; its result is checked again soon.",
    WaitReason.DISPATCH: "Dispatch is not on: nothing is sent until somebody turns it on.",
}


@dataclass(frozen=True)
class Send:
    """Transmit the stored bytes. A replay has something of this operation sent before it."""

    purpose: Purpose


@dataclass(frozen=True)
class LookUp:
    """Ask the provider what became of it."""


@dataclass(frozen=True)
class Verify:
    """Ask the provider whether the result is as it should be."""

    resource: str


@dataclass(frozen=True)
class Advance:
    """The effect is proven and, where it can be, checked: the run may go on."""

    resource: str


@dataclass(frozen=True)
class Reject:
    """Proven: no effect. The step fails."""


@dataclass(frozen=True)
class GiveUp:
    """A person has abandoned it: the workflow says how the run goes on."""


@dataclass(frozen=True)
class Drop:
    """It had no effect, and the run's end was asked for: nothing is sent any more."""


@dataclass(frozen=True)
class Hold:
    """Only a person can settle it."""

    reason: HoldReason


@dataclass(frozen=True)
class Wait:
    """Nothing to do before `until`; None: until somebody changes something."""

    until: datetime | None
    reason: WaitReason


Move = Send | LookUp | Verify | Advance | Reject | GiveUp | Drop | Hold | Wait
