"""Why a run stays under its version: what is asked, and the sentences for people.

Each sentence is the same for every run that stays for the same reason at the same step, so that
thousands can be counted under one; what concerns one run alone is beside it.
"""

from __future__ import annotations

from workflows.core.definitions import Migration, Workflow
from workflows.core.migration import Chain
from workflows.core.standing import Carried, Reason, Standing, Stays
from workflows.core.states import RunState
from workflows.core.words import describe

# What a waiting run may wait for and move all the same: a time, and its turn. One that waits for
# events moves to a step that waits for events: its wait goes along as it is.
WAITS_ANYWHERE = ("sleeping", "turn")
EVENT = "event"


def no_migration(standing: Standing, into: Workflow) -> Stays:
    return Stays(
        Reason.NO_MIGRATION,
        f"Version {into.version} says nothing of runs of version {standing.version}.",
        f"Declare migrates(from_version={standing.version}, …) in version {into.version}, or have "
        f"the versions between here that lead to it; or keep a worker that has version "
        f"{standing.version}.",
    )


def step_gone(standing: Standing, into: Workflow) -> Stays:
    return Stays(
        Reason.STEP_GONE,
        f"Version {into.version} has no step {standing.step!r}, and its migration from version "
        f"{standing.version} does not say which one takes its place.",
        f"Add steps={{{standing.step!r}: …}} to migrates(from_version={standing.version}), or keep "
        f"a worker that has version {standing.version}.",
    )


def busy(standing: Standing) -> Stays | None:
    """Say what the run is in the middle of, if it is."""
    version = standing.version
    open_writes = [each for each in standing.operations if not each.is_settled]
    if standing.cancelling:
        return Stays(
            Reason.CANCELLING,
            "Its end was asked for.",
            "It ends by itself, once what it has open on other systems is settled.",
        )
    if standing.leased:
        return Stays(
            Reason.AT_WORK,
            "A worker is at work on it.",
            "Try again when its step is done; a pause of the workflow stops it there.",
        )
    if standing.group:
        return Stays(
            Reason.IN_GROUP,
            f"It is a branch of the parallel group {standing.group!r} of another run.",
            f"Workers that have version {version} take the group to its end; the run that waits "
            "for it moves then.",
        )
    if open_writes:
        return Stays(
            Reason.UNSETTLED,
            "A write of its is not settled.",
            f"Let it be settled first: by a worker that has version {version}, or by the decision "
            "that it waits for.",
            open_writes[0].summary,
        )
    if standing.has_children:
        return Stays(
            Reason.CHILDREN,
            f"It waits at step {standing.step!r} for runs that it has started.",
            f"Let them end: a worker that has version {version} takes it past that step.",
        )
    return None


def bound(standing: Standing, into: Workflow, step: str) -> Stays | None:
    """Say what binds the run to its old step, or why the new one is no place for it."""
    track = into.track_of(step)
    if track is not None:
        return Stays(
            Reason.INTO_GROUP,
            f"Step {step!r} is in a branch of group {track.group!r} in version {into.version}.",
            f"Name the group itself: steps={{{standing.step!r}: {track.group!r}}}.",
        )
    if (
        standing.state is RunState.WAITING
        and standing.reason not in WAITS_ANYWHERE
        and not (standing.reason == EVENT and into.steps[step].kind == "wait")
    ):
        return Stays(
            Reason.WAITING,
            f"It waits at step {standing.step!r} for something that only this step knows.",
            "Let that come first; it moves then.",
        )
    if standing.state_after is RunState.HELD and step != standing.step:
        return Stays(
            Reason.HELD,
            f"It is held for a decision at step {standing.step!r}, which version {into.version} "
            f"calls {step!r}.",
            "Record the decision first; it moves then.",
        )
    return None


def scattered(
    standing: Standing, into: Workflow, migration: Migration | Chain, carried: tuple[Carried, ...]
) -> Stays | None:
    """Say which of its outputs would not be found where the later version looks for them."""
    sources: dict[str, str] = {}
    for each in carried:
        track = into.track_of(each.step)
        if track is not None:
            return Stays(
                Reason.OUTPUT_INTO_GROUP,
                f"The output of {each.source!r} would be that of {each.step!r}, which is in a "
                f"branch of group {track.group!r} in version {into.version}.",
                f"Say outputs={{{each.source!r}: None}} if nothing asks for it, or another step.",
            )
        if each.step in sources:
            return Stays(
                Reason.OUTPUT_TWICE,
                f"Step {each.step!r} would get the outputs of {sources[each.step]!r} and of "
                f"{each.source!r}.",
                "Say in outputs= where each goes, None for nowhere.",
            )
        sources[each.step] = each.source
    return group_passed(standing, into, migration)


def group_passed(standing: Standing, into: Workflow, migration: Migration | Chain) -> Stays | None:
    """What the branches of a group left is theirs: runs that have ended, and are not moved."""
    for track, name in sorted(standing.beside, key=lambda each: each[1]):
        heir = migration.heir(name)
        if heir is None or heir not in into.steps:
            continue
        stays_there = heir == name and into.track_of(name) == track
        if not stays_there or migration.change(name):
            return Stays(
                Reason.GROUP_PASSED,
                f"It has passed the parallel group {track.group!r}, whose branch keeps the output "
                f"of {name!r} as it is.",
                f"Leave {name!r} in its branch in version {into.version}, or say "
                f"outputs={{{name!r}: None}} if nothing asks for it.",
            )
    return None


def passed_again(
    standing: Standing, into: Workflow, step: str, carried: tuple[Carried, ...]
) -> Stays | None:
    """Say which step the run would come to a second time, though none leads back to it."""
    sources = {each.step: each.source for each in carried}
    there = sources.keys() | standing.passed.keys()
    again = [later.name for later in into.later(step) if later.name in there]
    if sources.get(step, standing.step) != standing.step:
        again.insert(0, step)
    name = next((name for name in again if not into.may_revisit(name)), None)
    if name is None:
        return None
    return Stays(
        Reason.PASSED,
        f"From {step!r} on, version {into.version} comes to step {name!r}, and the run has the "
        "output of a step of that name already: nothing that was done is done again.",
        f"Let steps= name a step behind it for {standing.step!r}, or give {name!r} a new name.",
    )


def bound_by_operation(standing: Standing, into: Workflow, step: str, visit: int) -> Stays | None:
    """A write that is over, while its step is not: under another name it would be sent again."""
    if not standing.operations or (step, visit) == (standing.step, standing.visit):
        return None
    return Stays(
        Reason.OPERATION_KEPT,
        f"The write of step {standing.step!r} is settled and the step is not over; as {step!r} of "
        f"version {into.version} it would be another one.",
        f"A worker that has version {standing.version} takes it past that step.",
        standing.operations[0].summary,
    )


# --- its outputs and its input ----------------------------------------------------------------


def change_failed(what: str, error: Exception) -> Stays:
    return Stays(
        Reason.CHANGE_FAILED,
        f"The function that changes the {what} raised {type(error).__name__}.",
        "Mend it for what this run has, and rehearse again.",
        describe(error),
    )


def output_unfit(each: Carried, into: Workflow, problem: str) -> Stays:
    return Stays(
        Reason.OUTPUT_UNFIT,
        f"The output of {each.source!r} does not fit step {each.step!r} of version {into.version}: "
        f"{problem}.",
        f"Let outputs={{{each.source!r}: …}} give a function that makes it fit, or None if nothing "
        "asks for it.",
    )


def input_unfit(migration: Migration | Chain, into: Workflow, problem: str) -> Stays:
    return Stays(
        Reason.INPUT_UNFIT,
        f"Its input does not fit version {into.version}: {problem}.",
        f"Let migrates(from_version={migration.from_version}, input=…) give a function that makes "
        "it fit.",
    )


def output_unreadable(source: str, error: Exception) -> Stays:
    return Stays(
        Reason.OUTPUT_UNREADABLE,
        f"The output of {source!r} cannot be read ({type(error).__name__}).",
        "See to the storage of outputs and to ROMULUS_KEYS, then try again.",
        describe(error),
    )


def output_not_kept(error: Exception) -> Stays:
    return Stays(
        Reason.OUTPUT_NOT_KEPT,
        "The storage did not keep an output that was changed.",
        "See to the storage of outputs, then try again.",
        describe(error),
    )


def moved_on() -> Stays:
    return Stays(
        Reason.MOVED_ON,
        "It went on by itself each time that it was looked at.",
        "Try again; a pause of the workflow stops it at its next step.",
    )
