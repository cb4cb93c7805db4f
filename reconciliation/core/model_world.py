"""The model destination: it counts effects, and does whatever a contract permits.

Written from the contract alone and not from `decide`. Where a contract leaves something open, the
destination does what is worst: it forgets a key at the first moment at which it may, it keeps a key
from the first time it saw it even when it refused then, it shows a record as late as it may or
never, it runs two requests of one key side by side unless it promises not to.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from reconciliation.core.classify import Answer, Phase, Report
from reconciliation.core.contracts import AnswerRule, Contract, Meaning
from reconciliation.core.protection import in_flight_until

NEVER = datetime.max.replace(tzinfo=UTC)
RESOURCE = "r"


class Saved(StrEnum):
    """What a key remembers."""

    SEEN = "seen"  # nothing: it was refused, and may be executed yet
    DONE = "done"
    REFUSED = "refused"


class Key(NamedTuple):
    name: str
    body: str
    seen_at: datetime
    saved: Saved


class Pending(NamedTuple):
    """A request that is executed only at `at`."""

    at: datetime
    key: str
    body: str
    visible_from: datetime


class World(NamedTuple):
    """What is really so.

    Attributes:
        effects: how often the effect was made.
        visible_from: since when look-ups show it; `NEVER` is a time.
    """

    effects: int = 0
    visible_from: datetime = NEVER
    keys: tuple[Key, ...] = ()
    pending: tuple[Pending, ...] = ()

    @property
    def may_have_effect(self) -> bool:
        return bool(self.effects or self.pending)


class Possible(NamedTuple):
    """One thing that a send may come to: the world after it, and what is learnt."""

    world: World
    report: Report
    weight: float = 1.0


LOST = (
    Report(Phase.SEND),
    Report(Phase.WAIT),
    # What something in between says, be it like the provider's own word, and an answer that broke
    # off or names nothing: each may hide a success, or the lack of one.
    Report(Phase.CONNECT, intermediary=True),
    Report(Phase.ANSWER, Answer(502, authentic=False, complete=True)),
    Report(Phase.ANSWER, Answer(200, authentic=False, complete=True, resource=RESOURCE)),
    Report(Phase.ANSWER, Answer(400, authentic=False, complete=True, error_type="invalid")),
    Report(Phase.ANSWER, Answer(200, authentic=True, complete=False, resource=RESOURCE)),
    Report(Phase.ANSWER, Answer(200, authentic=True, complete=True)),
)
NOT_CONNECTED = Report(Phase.CONNECT)


@dataclass(frozen=True)
class Destination:
    """Everything that one contract permits."""

    contract: Contract

    # --- a send -------------------------------------------------------------------------------

    def sends(self, world: World, key: str, body: str, now: datetime) -> Iterator[Possible]:
        """Everything that one send at `now` may come to."""
        yield Possible(world, NOT_CONNECTED)
        yield from lost(world)
        yield from self.refusals(world, key, body, now)
        yield from self.executions(world, key, body, now)
        over = in_flight_until(self.contract, now)
        if self.remembered(world, key, now) is None or self.remembered(world, key, over) is None:
            for visible_from in self.visible(over, over):
                late = Pending(over, key, body, visible_from)
                yield from lost(world._replace(pending=(*world.pending, late)))

    def refusals(self, world: World, key: str, body: str, now: datetime) -> Iterator[Possible]:
        """The documented answers without an effect of this request, where they may be given."""
        for rule in distinct(self.contract.answers):
            report = answered(rule)
            match rule.means:
                case Meaning.REJECTED if rule.resolves_earlier:
                    if not world.may_have_effect:
                        yield Possible(self.saw(world, key, body, now, Saved.REFUSED), report)
                case Meaning.REJECTED:
                    yield Possible(self.saw(world, key, body, now, Saved.SEEN), report)
                case Meaning.IN_FLIGHT if world.pending:
                    yield Possible(world, report)
                case Meaning.KEY_MISMATCH | Meaning.EXISTS:
                    yield from self.told_of_itself(world, key, body, now, report)
                case _:
                    pass

    def told_of_itself(
        self, world: World, key: str, body: str, now: datetime, report: Report
    ) -> Iterator[Possible]:
        """It was there before us; or something in between sent ours twice, and this answers the
        second one."""
        yield Possible(world, report)
        remembered = self.remembered(world, key, now)
        unused = remembered is None or remembered.saved is Saved.SEEN
        if unused and not world.may_have_effect:
            for visible_from in self.visible(now, in_flight_until(self.contract, now)):
                done = self.applied(world, key, body, now, visible_from)
                yield Possible(done, report, 1 / 2)

    def executions(self, world: World, key: str, body: str, now: datetime) -> Iterator[Possible]:
        """It is executed at once, or answered from what the key remembers."""
        if world.pending and self.overlaps:
            return  # it is refused, or waits for the first: nothing new is learnt
        remembered = self.remembered(world, key, now)
        if remembered is not None and not world.pending:
            if remembered.body != body and self.refuses_other_bodies:
                return
            if remembered.body == body and remembered.saved is Saved.REFUSED:
                return
            if remembered.body == body and remembered.saved is Saved.DONE:
                yield from self.told(world)
                return
        for visible_from in self.visible(now, in_flight_until(self.contract, now)):
            yield from self.told(self.applied(world, key, body, now, visible_from))

    def told(self, world: World) -> Iterator[Possible]:
        """Its success reaches us, or is lost."""
        for rule in distinct(self.contract.answers):
            if rule.means is Meaning.ACKNOWLEDGED:
                yield Possible(world, answered(rule))
        yield from lost(world)

    def applied(
        self, world: World, key: str, body: str, at: datetime, visible_from: datetime
    ) -> World:
        done = self.saw(world, key, body, at, Saved.DONE)
        first = min(world.visible_from, visible_from)
        return done._replace(effects=world.effects + 1, visible_from=first)

    # --- time ---------------------------------------------------------------------------------

    def later(self, world: World, now: datetime) -> World:
        """Time passes until `now`: what was being executed by then is done."""
        if not world.pending:
            return world
        waiting = world.pending
        world = world._replace(pending=tuple(each for each in waiting if each.at > now))
        for each in sorted(each for each in waiting if each.at <= now):
            known = self.remembered(world, each.key, each.at)
            if not (self.overlaps and known is not None and known.saved is Saved.DONE):
                world = self.applied(world, each.key, each.body, each.at, each.visible_from)
        return world

    def at_last(self, world: World) -> World:
        return self.later(world, NEVER)

    # --- what it keeps ------------------------------------------------------------------------

    @property
    def overlaps(self) -> bool:
        return self.contract.replay is not None and self.contract.replay.overlaps

    @property
    def refuses_other_bodies(self) -> bool:
        return any(rule.means is Meaning.KEY_MISMATCH for rule in self.contract.answers)

    def remembered(self, world: World, key: str, at: datetime) -> Key | None:
        rule = self.contract.replay
        if rule is None:
            return None
        kept = timedelta(seconds=rule.retention_floor_seconds)
        found = (each for each in world.keys if each.name == key and at < each.seen_at + kept)
        return next(found, None)

    def saw(self, world: World, key: str, body: str, at: datetime, saved: Saved) -> World:
        """The key as it is kept after this: from the first time it was seen."""
        if self.contract.replay is None:
            return world
        known = self.remembered(world, key, at)
        if known is not None and known.saved is not Saved.SEEN:
            return world
        kept = Key(key, body, known.seen_at if known else at, saved)
        others = tuple(each for each in world.keys if each.name != key)
        return world._replace(keys=(*others, kept))

    def visible(self, made_at: datetime, over: datetime) -> tuple[datetime, ...]:
        """Since when a record made at `made_at` may be shown: as soon as it may, or at the last."""
        rule = self.contract.look_up
        if rule is None:
            return (NEVER,)
        soon = made_at + timedelta(seconds=rule.visibility_lag_seconds)
        if rule.absence_proof_after_seconds is None:
            return (soon, NEVER)
        last = over + timedelta(seconds=rule.absence_proof_after_seconds)
        return (soon, last) if last > soon else (last,)


def lost(world: World) -> Iterator[Possible]:
    """No usable answer: what the world is now is not known."""
    for report in LOST:
        yield Possible(world, report, 1 / len(LOST))


def distinct(rules: tuple[AnswerRule, ...]) -> tuple[AnswerRule, ...]:
    """One rule for each thing that an answer can say; which status says it does not matter."""
    return tuple({(rule.means, rule.resolves_earlier, rule.retry): rule for rule in rules}.values())


RETRY_AFTER_SECONDS = 30.0


def answered(rule: AnswerRule) -> Report:
    """The provider's own, complete answer that the rule is about."""
    status = rule.status if isinstance(rule.status, int) else int(rule.status[0]) * 100
    acknowledged = rule.means is Meaning.ACKNOWLEDGED
    answer = Answer(
        status,
        authentic=True,
        complete=True,
        resource=RESOURCE if acknowledged else None,
        error_type=rule.error_type,
        error_code=rule.error_code,
        retry_after_seconds=RETRY_AFTER_SECONDS if rule.retry != "never" else None,
    )
    return Report(Phase.ANSWER, answer)
