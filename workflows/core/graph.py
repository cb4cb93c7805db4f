"""The order of a workflow's steps: what follows what, and which orders cannot work.

A workflow has one main line and, for every branch of a parallel group, a line of its own. The
group stands for its branches in the main line. Within a line a step leads to the next one, or to
the one that it names; a `branch` leads to several, and a `wait` may go on elsewhere when its
deadline came. No step leads from one line into another.

`plan_of` refuses what cannot work and works out once what the engine asks for every step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from workflows.core.errors import InvalidDefinition, UsageError
from workflows.core.steps import END, NAME, Step

Steps = Mapping[str, Step]
Edges = Mapping[str, Sequence[str]]


# The option of a step that names where it may go on beside the next one.
NAMED_IN = {"branch": "to", "wait": "on_deadline", "write": "when_off"}


@dataclass(frozen=True, slots=True)
class Track:
    """A branch of a parallel group, counted from 0 as its author wrote them."""

    group: str
    index: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The order of the steps, by their names.

    Attributes:
        first: where a run begins.
        after: the step that follows each, or "" at the end of its line; no `branch` is in it.
        next: all that can follow each within its line, `END` left out.
        tracks: the branch of a group that each step is in; none of the main line is in it.
        leads: `next` over all lines: from a group into its branches, from their ends past it.
        loops: the steps that one run can come to again; a branch of a group is a run of its own.
    """

    first: str
    after: Mapping[str, str]
    next: Edges
    tracks: Mapping[str, Track]
    leads: Edges
    loops: frozenset[str]


def plan_of(workflow: str, place: str, steps: Steps) -> Plan:
    """Return the order of `steps`.

    Raises:
        InvalidDefinition: names the file and line of what cannot work.
    """
    if not steps:
        raise InvalidDefinition(f"{place}: workflow {workflow!r} has no step")
    tracks = tracks_in(workflow, steps)
    lines = lines_of(steps, tracks)
    for line in lines:
        for name in line:
            check_targets(workflow, steps[name], line, steps, tracks)
    after = {name: follower for line in lines for name, follower in followers(line, steps)}
    following = {name: following_of(step, after) for name, step in steps.items()}
    for line in lines:
        check_cycles(line, following, steps)
    leads = {name: leads_of(steps[name], following, after, tracks) for name in steps}
    first = lines[0][0]
    check_ways_on(steps, after, leads, tracks)
    check_reached(first, steps, leads, tracks)
    loops = frozenset(name for name in steps if name in reached(following[name], following))
    return Plan(first, after, following, tracks, leads, loops)


def target_of(step: Step, chosen: object) -> str:
    """Return the name that a branch has chosen, or `END`.

    Raises:
        UsageError: it may not choose that; names what it may. What can be no name may be private,
            and is not repeated.
    """
    if isinstance(chosen, str) and chosen in step.to:
        return chosen
    if not step.to:
        raise UsageError(f"step {step.name!r} is no branch, and chooses nothing")
    is_name = isinstance(chosen, str) and NAME.fullmatch(chosen)
    said = repr(chosen) if is_name else f"no name of a step but {type(chosen).__name__}"
    allowed = " or ".join("END" if name == END else repr(name) for name in step.to)
    raise UsageError(f"branch {step.name!r} returned {said}; it may return {allowed}")


def as_data(steps: Steps, plan: Plan) -> list[dict[str, Any]]:
    """Return the steps in written order: each with what can follow, a group with its branches."""
    return [
        {
            "name": step.name,
            "kind": step.kind,
            "title": step.title,
            "next": list(plan.next[step.name]),
        }
        | ({"branches": [list(branch) for branch in step.branches]} if step.branches else {})
        for step in steps.values()
    ]


def reached(starts: Iterable[str], edges: Edges) -> set[str]:
    """Return `starts` and all that can be come to from them."""
    seen, ahead = set(starts), list(starts)
    while ahead:
        new = [name for name in edges[ahead.pop()] if name not in seen]
        seen.update(new)
        ahead.extend(new)
    return seen


# --- lines ------------------------------------------------------------------------------------


def tracks_in(workflow: str, steps: Steps) -> dict[str, Track]:
    """Return the branch of every step that is in a group.

    Raises:
        InvalidDefinition: a group names a step twice, one that is not there, or another group.
    """
    tracks: dict[str, Track] = {}
    for group in steps.values():
        for index, branch in enumerate(group.branches):
            for name in branch:
                check_member(workflow, group, name, steps, tracks)
                tracks[name] = Track(group.name, index)
    return tracks


def check_member(
    workflow: str, group: Step, name: str, steps: Steps, tracks: Mapping[str, Track]
) -> None:
    said = f"{group.place}: group {group.name!r}"
    if name not in steps:
        raise InvalidDefinition(f"{said} names {name!r}, which workflow {workflow!r} does not have")
    if steps[name].kind == "parallel":
        raise InvalidDefinition(
            f"{said} names the group {name!r}: groups do not nest; let a children step start runs "
            "of a workflow of its own"
        )
    if name in tracks:
        raise InvalidDefinition(
            f"{said} names {name!r}, which is in a branch of group {tracks[name].group!r} already"
        )


def lines_of(steps: Steps, tracks: Mapping[str, Track]) -> list[Sequence[str]]:
    """Return the names of each line in order, the main line first."""
    main = [name for name in steps if name not in tracks]
    return [main, *(branch for step in steps.values() for branch in step.branches)]


def followers(line: Sequence[str], steps: Steps) -> Iterable[tuple[str, str]]:
    """Yield every step of a line that is no branch, with the one that follows or ""."""
    for name, written in zip(line, [*line[1:], ""], strict=True):
        step = steps[name]
        if step.kind != "branch":
            yield name, written if not step.then else "" if step.then == END else step.then


def following_of(step: Step, after: Mapping[str, str]) -> tuple[str, ...]:
    named = tuple(name for name in step.to if name != END)
    if step.kind == "branch" or not after[step.name]:
        return named
    return (after[step.name], *(name for name in named if name != after[step.name]))


def leads_of(
    step: Step, following: Edges, after: Mapping[str, str], tracks: Mapping[str, Track]
) -> tuple[str, ...]:
    into = tuple(branch[0] for branch in step.branches)
    past = following[tracks[step.name].group] if step.name in tracks and ends(step, after) else ()
    return (*following[step.name], *into, *past)


def ends(step: Step, after: Mapping[str, str]) -> bool:
    """Return whether the line of `step` can end with it."""
    return END in step.to or (step.kind != "branch" and not after[step.name])


# --- what is refused --------------------------------------------------------------------------


def check_targets(
    workflow: str, step: Step, line: Sequence[str], steps: Steps, tracks: Mapping[str, Track]
) -> None:
    named = NAMED_IN.get(step.kind, "to")
    for option, target in [("then", step.then), *((named, name) for name in step.to)]:
        if not target or target == END or target in line:
            continue
        said = f"{step.place}: step {step.name!r} names {target!r} in {option}=, which"
        if target not in steps:
            raise InvalidDefinition(f"{said} workflow {workflow!r} does not have")
        if step.name in tracks:
            raise InvalidDefinition(
                f"{said} is not in its branch of group {tracks[step.name].group!r}: a branch goes "
                "on at its own steps, or ends with END"
            )
        raise InvalidDefinition(
            f"{said} is inside group {tracks[target].group!r}: name the group itself"
        )


def check_cycles(line: Sequence[str], following: Edges, steps: Steps) -> None:
    """Refuse steps that lead back to themselves without a branch among them."""
    plain = {name: () if steps[name].kind == "branch" else following[name] for name in line}
    first = next((name for name in line if name in reached(plain[name], plain)), "")
    if first:
        cycle = way_round(first, plain)
        # The last one leads back to the earliest: by a then=, an on_deadline= or a when_off=.
        raise InvalidDefinition(
            f"{steps[cycle[-1]].place}: {' -> '.join([*cycle, first])} would never end: "
            "put a branch into it that decides when to go on"
        )


def way_round(start: str, edges: Edges) -> list[str]:
    """Return the shortest way that leads from `start` back to it, without the end."""
    came_from: dict[str, str] = {}
    ahead = deque([start])
    while start not in came_from:
        at = ahead.popleft()
        for name in edges[at]:
            if name not in came_from:
                came_from[name] = at
                ahead.append(name)
    way = [came_from[start]]
    while way[-1] != start:
        way.append(came_from[way[-1]])
    return way[::-1]


def check_ways_on(
    steps: Steps, after: Mapping[str, str], leads: Edges, tracks: Mapping[str, Track]
) -> None:
    """Refuse a step from which no end can be come to."""
    back: dict[str, list[str]] = {name: [] for name in steps}
    for name, ahead in leads.items():
        for target in ahead:
            back[target].append(name)
    last = [
        name
        for name, step in steps.items()
        if ends(step, after) and (name not in tracks or ends(steps[tracks[name].group], after))
    ]
    stuck = steps.keys() - reached(last, back)
    if stuck:
        # Those that lead to nothing but each other are the reason. As every cycle has a branch,
        # one of them is a branch, and no branch comes to fewer steps.
        branches = [step for name, step in steps.items() if name in stuck and step.kind == "branch"]
        reason = min(branches, key=lambda step: len(reached(leads[step.name], leads)))
        raise InvalidDefinition(
            f"{reason.place}: branch {reason.name!r} has no way on: wherever it goes, no end is "
            "reached; name END in its to=, or a step that leads to the end"
        )


def check_reached(first: str, steps: Steps, leads: Edges, tracks: Mapping[str, Track]) -> None:
    """Refuse a step to which no way leads; where a whole group is lost, the group."""
    known = reached([first], leads)
    for name, step in steps.items():
        if name not in known and (name not in tracks or tracks[name].group in known):
            raise InvalidDefinition(
                f"{step.place}: step {name!r} is never reached: name it in a then= or to=, "
                "or remove it"
            )
