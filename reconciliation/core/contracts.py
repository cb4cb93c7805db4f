"""What a provider documents about keys, look-ups and rejections, as data.

One schema for the files in `reconciliation/contracts/` and for what an admin edits. Whatever a
contract does not claim is no guarantee: no replay, no look-up, no proof. Times are in seconds.
"""

from __future__ import annotations

from datetime import date, timedelta
from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from reconciliation.core.errors import InvalidContract

Seconds = Annotated[int, Field(ge=0)]
LEAST_PER_SECOND, MOST_PER_SECOND = 0.01, 1000.0
PerSecond = Annotated[float, Field(ge=LEAST_PER_SECOND, le=MOST_PER_SECOND)]


class Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Source(Strict):
    """Where a rule was read. `evidence` says how: the provider's own page, a quotation, a run."""

    title: str
    url: str = ""
    evidence: Literal["primary", "secondary_quote", "observed"]


class KeyRule(Strict):
    """How the provider is told that two sends are the same one.

    Attributes:
        name: of the header, of the query's parameter, or of the body's field, with dots.
        quoted: as a structured field's string, in quotation marks.
        methods: those that heed it; empty: all.
    """

    carrier: Literal["header", "body", "query"]
    name: Annotated[str, Field(min_length=1)]
    max_length: Annotated[int, Field(gt=0)] = 255
    quoted: bool = False
    methods: tuple[str, ...] = ()


class ReplayRule(Strict):
    """What protects a second send with the same key.

    Attributes:
        retention_floor_seconds: the *shortest* time for which the provider promises to know the
            key, counted from the first transmission's start.
        margin_seconds: taken off, for clocks and for an answer's way back.
        overlaps: it may be sent while an earlier one may still be executing.
    """

    retention_floor_seconds: Annotated[int, Field(gt=0)]
    margin_seconds: Seconds
    overlaps: bool = False

    @property
    def window(self) -> timedelta:
        return timedelta(seconds=self.retention_floor_seconds - self.margin_seconds)

    @model_validator(mode="after")
    def margin_fits(self) -> Self:
        if self.margin_seconds >= self.retention_floor_seconds:
            raise ValueError("margin_seconds must be less than retention_floor_seconds")
        return self


class LookUpRate(Strict):
    """How often the provider documents that it may be asked, and where that was read."""

    per_second: PerSecond
    source: Source


class LookUpRule(Strict):
    """How the provider can be asked what became of an operation.

    Attributes:
        by: which of the provider's ways this is, such as "list"; an action may name one.
        marker: where the provider's own record carries our operation ID.
        visibility_lag_seconds: a record may be invisible for so long after it was made.
        absence_proof_after_seconds: from so long after the last byte could have arrived, finding
            nothing proves that nothing was done. None: it never does.
        rate: how often it may be asked this way. None: nothing is documented.
    """

    by: str = ""
    marker: Annotated[str, Field(min_length=1)]
    visibility_lag_seconds: Seconds
    absence_proof_after_seconds: Seconds | None = None
    rate: LookUpRate | None = None


class Meaning(StrEnum):
    """What a documented answer says about the transmission that it answers."""

    ACKNOWLEDGED = "acknowledged"
    REJECTED = "rejected"  # this transmission had no effect
    IN_FLIGHT = "in_flight"  # one with the same key is still executing
    KEY_MISMATCH = "key_mismatch"  # this key came with other parameters
    EXISTS = "exists"  # a thing with this natural key exists; it may be ours
    UNKNOWN = "unknown"


class Retry(StrEnum):
    NEVER = "never"
    SAME_KEY = "same_key"


class AnswerRule(Strict):
    """What one kind of answer means. The first rule that fits counts.

    Attributes:
        status: one status, or a family such as "4xx".
        error_type, error_code: as the provider names them; None fits any.
        resolves_earlier: it also says what became of the transmissions before it.
        retry: what may follow a rejection.
    """

    status: int | Literal["2xx", "3xx", "4xx", "5xx"]
    error_type: str | None = None
    error_code: str | None = None
    means: Meaning
    resolves_earlier: bool = False
    retry: Retry = Retry.NEVER

    def fits(self, status: int, error_type: str | None, error_code: str | None) -> bool:
        family = f"{status // 100}xx"
        return (
            self.status in (status, family)
            and self.error_type in (None, error_type)
            and self.error_code in (None, error_code)
        )


class Deadlines(Strict):
    """How long each part of one exchange may take; `timeout_seconds` is for the whole.

    `connect_seconds` also bounds the look-up of the name and the handshake of TLS, each for
    itself. None: as long as the whole.
    """

    connect_seconds: Annotated[float | None, Field(gt=0)] = 10
    write_seconds: Annotated[float | None, Field(gt=0)] = None
    read_seconds: Annotated[float | None, Field(gt=0)] = None


class Budget(Strict):
    """How much Romulus does by itself before it asks a person.

    `transmissions` counts sends that left, `not_sent` those that could not even connect.
    `elapsed_seconds` counts from the first send, or from when a person last let it be sent again:
    an outcome that is not known by then is held, however much of the rest is left; None: no limit.
    """

    transmissions: Annotated[int, Field(gt=0)] = 4
    not_sent: Annotated[int, Field(gt=0)] = 20
    look_ups: Annotated[int, Field(gt=0)] = 8
    first_pause_seconds: Annotated[float, Field(gt=0)] = 2
    longest_pause_seconds: Annotated[float, Field(gt=0)] = 300
    elapsed_seconds: Annotated[float, Field(gt=0)] | None = None

    def pause(self, done: int) -> timedelta:
        """The rest after `done` tries of one kind: doubled each time, up to the longest."""
        doubled = self.first_pause_seconds * 2.0 ** min(max(done - 1, 0), 30)
        return timedelta(seconds=min(doubled, self.longest_pause_seconds))


class Contract(Strict):
    """What one provider documents, in one version.

    Attributes:
        scope: the tuple within which a key counts; Romulus replays through no other.
        namespace: what the paths begin with that the contract speaks of.
        request_id_header: the provider's own; an answer without it is not the provider's.
        other_look_ups: further ways to ask; an action picks one by its `by`.
        unverified: what nobody has found documented; no guarantee is taken from it.
        notes: for whoever decides.
    """

    slug: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]*$")]
    version: Annotated[int, Field(ge=1)]
    name: str
    reviewed_on: date
    review_again_on: date
    sources: Annotated[tuple[Source, ...], Field(min_length=1)]
    scope: Annotated[tuple[str, ...], Field(min_length=1)]
    namespace: str = ""
    request_id_header: str | None = None
    key: KeyRule | None = None
    replay: ReplayRule | None = None
    look_up: LookUpRule | None = None
    other_look_ups: tuple[LookUpRule, ...] = ()
    verifies: bool = False
    irreversible: bool = False
    answers: tuple[AnswerRule, ...] = ()
    budget: Budget = Budget()
    timeout_seconds: Annotated[float, Field(gt=0)] = 30
    deadlines: Deadlines = Deadlines()
    unverified: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def replay_needs_key(self) -> Self:
        if self.replay and not self.key:
            raise ValueError("replay needs a key: without one a second send is a second effect")
        return self

    @model_validator(mode="after")
    def reviewed_before_again(self) -> Self:
        if self.review_again_on <= self.reviewed_on:
            raise ValueError("review_again_on must be later than reviewed_on")
        return self

    @model_validator(mode="after")
    def look_ups_can_be_told_apart(self) -> Self:
        ways = [rule.by for rule in (self.look_up, *self.other_look_ups) if rule is not None]
        if len(set(ways)) < len(ways) or (self.other_look_ups and self.look_up is None):
            raise ValueError("other_look_ups: each way to ask needs a look_up first and its own by")
        return self

    def asking_by(self, way: str) -> Contract | None:
        """The contract with this way to ask in place of the usual; None when it has none."""
        rules = [rule for rule in (self.look_up, *self.other_look_ups) if rule is not None]
        rule = next((rule for rule in rules if rule.by == way), None)
        return self.model_copy(update={"look_up": rule}) if rule is not None else None

    def is_overdue(self, today: date) -> bool:
        """Whether it was to be reviewed again before `today`."""
        return today > self.review_again_on

    @property
    def can_be_settled(self) -> bool:
        """Whether anything that the provider says or shows could ever prove an effect."""
        acknowledged = any(rule.means is Meaning.ACKNOWLEDGED for rule in self.answers)
        return acknowledged or self.look_up is not None

    @property
    def timeout(self) -> timedelta:
        return timedelta(seconds=self.timeout_seconds)


def parse_contract(document: Any, where: str) -> Contract:
    """Return the contract of a document.

    Raises:
        InvalidContract: names `where` (file or row) and each field that does not fit.
    """
    if not isinstance(document, dict):
        raise InvalidContract(
            f"{where}: a contract names its fields, one a line, such as “slug: …”; this is "
            f"{'empty' if document is None else 'none'}"
        )
    try:
        return Contract.model_validate(document)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in problem['loc']) or 'the contract'}: {problem['msg']}"
            for problem in error.errors(include_url=False, include_input=False)
        )
        raise InvalidContract(f"{where}: {problems}") from error
