"""What becomes of a run when it goes on under a later version of its workflow.

`place` says where it would stand; facts are enough for that, and for a page. `convert` then asks
the author's functions what becomes of its outputs and its input, and holds them against the types
of the later version. Either answers with the reason why the run stays, in words for people.
Nothing is written here: `workflows.services.migrations` carries out what is answered.

A run moves between two steps only: nobody is at work on it, and nothing that it has begun at its
step is open on another system, in runs that it has started, or before a person. What it has passed
is not done again: a run stays rather than come a second time to a step that stands on no loop.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from workflows.core import staying
from workflows.core.definitions import Migration, Workflow
from workflows.core.errors import InvalidInput, UnstorableValue
from workflows.core.migration import Chain
from workflows.core.standing import Carried, Converted, Moves, NewOutput, Standing, Stays
from workflows.core.values import Json, from_json, to_json


def place(standing: Standing, into: Workflow) -> Moves | Stays:
    """Return where a run would stand under `into`, or why it stays."""
    migration = into.migration_from(standing.version)
    if migration is None:
        return staying.no_migration(standing, into)
    step = migration.position(standing.step)
    if step is None:
        # What it is busy with comes first: it may be past this step before anybody has read this.
        return staying.busy(standing) or staying.step_gone(standing, into)
    carried = tuple(carried_over(standing, into, migration))
    visit = visit_at(step, standing, carried)
    stays = (
        staying.busy(standing)
        or staying.bound(standing, into, step)
        or staying.scattered(standing, into, migration, carried)
        or staying.passed_again(standing, into, step, carried)
        or staying.bound_by_operation(standing, into, step, visit)
    )
    return stays or Moves(step, visit, standing.state_after, carried)


def visit_at(step: str, standing: Standing, carried: tuple[Carried, ...]) -> int:
    """Return the visit with which the run comes to `step`: its own, or the next that is free."""
    given = max((each.visit for each in carried if each.step == step), default=0)
    if step == standing.step and not given:
        return standing.visit
    return max(standing.passed.get(step, 0), given) + 1


def carried_over(
    standing: Standing, into: Workflow, migration: Migration | Chain
) -> Iterator[Carried]:
    """Yield the outputs that go along. One that keeps name and value stays where it is; another is
    written as a later visit of its new step, so that the record is only ever added to."""
    for source in sorted(standing.passed):
        if standing.known is not None and source not in standing.known:
            continue  # of a version before the present one; what replaced it is carried over
        heir = migration.heir(source)
        if heir is None or heir not in into.steps:
            continue
        if heir == source and not migration.change(source):
            yield Carried(source, heir)
        else:
            yield Carried(source, heir, standing.passed.get(heir, 0) + 1)


# --- its outputs and its input ----------------------------------------------------------------


def convert(
    moves: Moves,
    migration: Migration | Chain,
    into: Workflow,
    values: Mapping[str, Json],
    input: Json,
    *,
    output_limit: int,
    input_limit: int,
) -> Converted | Stays:
    """Make the outputs and the input of a run that moves those of the later version.

    Every output that goes along has to fit the step that it belongs to then, also one that stays
    as it is: what does not fit would only fail later, where nobody is looking.

    Args:
        values: by old step, the outputs of `moves.carried`, as they were stored.
        input: the run's, as it was stored.
        output_limit, input_limit: of their sizes, in bytes.
    """
    outputs = []
    for each in moves.carried:
        changed = output_of(each, migration, into, values[each.source], output_limit)
        if isinstance(changed, Stays):
            return changed
        if each.visit:
            outputs.append(NewOutput(each.source, each.step, each.visit, changed))
    changed_input = input_of(migration, into, input, input_limit)
    if isinstance(changed_input, Stays):
        return changed_input
    return Converted(tuple(outputs), changed_input)


def output_of(
    each: Carried, migration: Migration | Chain, into: Workflow, value: Json, limit: int
) -> Json | Stays:
    change = migration.change(each.source)
    if change is not None:
        try:
            value = change(value)
        except Exception as error:  # noqa: BLE001 (the author's code; whatever it raises)
            return staying.change_failed(f"output of {each.source!r}", error)
    problem = unfit(value, into.steps[each.step].returns, limit, changed=change is not None)
    if not problem:
        return value
    return staying.output_unfit(each, into, problem)


def input_of(migration: Migration | Chain, into: Workflow, value: Json, limit: int) -> Json | Stays:
    if migration.input is not None:
        try:
            value = migration.input(value)
        except Exception as error:  # noqa: BLE001 (the author's code; whatever it raises)
            return staying.change_failed("input", error)
    problem = unfit(value, into.input, limit, changed=migration.input is not None)
    if not problem:
        return value
    return staying.input_unfit(migration, into, problem)


def unfit(value: Json, annotation: Any, limit: int, *, changed: bool) -> str:
    """Say how `value` does not fit `annotation`; empty when it does.

    What the author's function has made has to be storable, too; what was stored is.
    """
    try:
        if changed:
            to_json(value, Any, limit=limit, what="it")
        from_json(value, annotation, what="it")
    except (UnstorableValue, InvalidInput) as error:
        return str(error).removeprefix("it: ")
    return ""
