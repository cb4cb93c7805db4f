"""The step kinds that an author writes: one decorator each, and parallel groups.

They only describe; what their steps do is in the handlers of each kind, which register themselves
(`workflows.services.kinds`). What one step cannot be is refused here, with file and line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, get_args

from workflows.core.errors import InvalidDefinition
from workflows.core.retry import RetryPolicy
from workflows.core.step_adding import Decorator, Steps
from workflows.core.step_checks import (
    output_of_approval,
    output_of_branch,
    output_of_children,
    output_of_sleep,
    output_of_step,
    output_of_wait,
    output_of_write,
)
from workflows.core.steps import (
    DEFAULT_TIMEOUT,
    DEFAULT_VISITS,
    ApprovalOptions,
    ChildEnd,
    ChildrenOptions,
    Join,
    Leftover,
    OnAbandon,
    OnDeadline,
    OnFailure,
    Step,
    Target,
    UndoFunction,
    WaitOptions,
    WriteOptions,
    calling_place,
    name_of,
    names_of,
    policy_of,
    then_of,
)

FEWEST_BRANCHES = 2


class StepKinds(Steps):
    """The author's side of a workflow."""

    # Options that more than one kind takes:
    #   timeout     how long the function may run before it is taken for hung and replaced
    #   on_failure  what the run does when the step failed and its tries are spent
    #   then        the step to go on at, or END; the next in written order by default
    #   sensitive   the output is encrypted at rest
    #   retain      how long after the run's end the output is kept

    def step(
        self,
        *,
        retries: int | RetryPolicy = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
        then: Target | None = None,
        atomic: bool = False,
        sensitive: bool = False,
        retain: timedelta | None = None,
    ) -> Decorator:
        """Add a step that computes or reads; it may run more than once before it commits.

        Args:
            atomic: what the function writes through the ORM commits with its checkpoint, or not
                at all.
        """
        return self._adder(
            "step",
            output_of_step,
            retry=policy_of(retries),
            timeout=timeout,
            on_failure=on_failure,
            then=then_of(then),
            atomic=atomic,
            sensitive=sensitive,
            retain=retain,
        )

    def write(
        self,
        *,
        provider: str,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
        on_abandon: OnAbandon = "fail",
        approved_by: Target | None = None,
        when_off: Target | None = None,
        undo: UndoFunction | None = None,
        then: Target | None = None,
        sensitive: bool = False,
        retain: timedelta | None = None,
        retries: object = None,
    ) -> Decorator:
        """Add a step that describes one external effect; the ledger sends and settles it.

        The function returns an `Intent` and must not write by itself. It has no retries: whether
        a write may be sent again is the provider contract's matter, never the step's. `retries`
        is there to say so.

        Args:
            approved_by: the `approval` step of this workflow whose approval it needs. What was
                approved there is compared with what is sent, just before it is.
            when_off: the step, or `END`, that the run goes on at, with None for an output, when
                dispatch is off as it comes to this one; None: it waits until it is on.
            undo: a function of the run and the receipt (`{"operation": …, "resource": …}`) that
                returns the `Intent` which takes the effect back, at the same provider. With it a
                person may decide *undo*; the ledger sends and settles it like any write.
        """
        return self._adder(
            "write",
            partial(output_of_write, retries=retries, undo=undo),
            retry=RetryPolicy(),
            timeout=timeout,
            on_failure=on_failure,
            then=then_of(then),
            write=WriteOptions(
                provider,
                on_abandon,
                when_off=then_of(when_off),
                approved_by=then_of(approved_by),
                undo=undo,
            ),
            to=() if when_off is None else (then_of(when_off),),
            sensitive=sensitive,
            retain=retain,
        )

    def approval(
        self,
        *,
        action: str,
        expires_in: timedelta,
        on_denied: OnDeadline | Target = "fail",
        on_question: OnDeadline | Target = "hold",
        on_expired: OnDeadline | Target = "hold",
        retries: int | RetryPolicy = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "hold",
        then: Target | None = None,
        retain: timedelta | None = None,
    ) -> Decorator:
        """Add a step that asks people whether an action may be carried out; its function returns
        the `ProposedAction`.

            @refund.approval(action="refunds.create", expires_in=timedelta(hours=24))
            def propose(run) -> ProposedAction: ...

            @refund.write(provider="payments", approved_by="propose")
            def create_refund(run) -> Intent:
                return run.output("propose").action

        No worker is held up meanwhile. The output is an `Approved`. An approval grants nothing
        by itself: it is checked again just before the write.

        Args:
            action: the provider's action that is proposed.
            expires_in: how long the proposal counts, and an approval of it, from the proposal on.
            on_denied, on_question, on_expired: what the run does when it was denied, sent back
                with a question, or not settled in time: `fail`, `hold` for a person, `continue`
                with what was answered as the output, or go on at the step that is named. A held
                step that is tried again proposes anew.
        """
        options = ApprovalOptions(
            action,
            expires_in,
            way_of("on_denied", on_denied),
            way_of("on_question", on_question),
            way_of("on_expired", on_expired),
        )
        return self._adder(
            "approval",
            output_of_approval,
            retry=policy_of(retries),
            timeout=timeout,
            on_failure=on_failure,
            then=then_of(then),
            to=options.targets,
            # What is proposed may be private: it is sealed with the proposal, and here too.
            sensitive=True,
            retain=retain,
            approval=options,
        )

    def branch(
        self,
        *,
        to: Target | Sequence[Target],
        max_visits: int = DEFAULT_VISITS,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "hold",
    ) -> Decorator:
        """Add a step whose function returns the name of the next one.

        Args:
            to: what it may return: names of steps, and `END`. An earlier one makes a loop.
            max_visits: how often one run may come to this branch. Every loop has a branch in it,
                so that every loop ends.
        """
        names = names_of(to)
        return self._adder(
            "branch",
            partial(output_of_branch, to=names),
            retry=RetryPolicy(),
            timeout=timeout,
            on_failure=on_failure,
            then="",
            to=names,
            max_visits=max_visits,
        )

    def sleep(
        self, *, timeout: timedelta = DEFAULT_TIMEOUT, then: Target | None = None
    ) -> Decorator:
        """Add a step whose function returns how long to wait, as a `timedelta`, or until when, as
        a `datetime` with a zone."""
        return self._adder(
            "sleep",
            output_of_sleep,
            retry=RetryPolicy(),
            timeout=timeout,
            on_failure="fail",
            then=then_of(then),
        )

    def wait(
        self,
        *,
        event: str | Sequence[str],
        within: timedelta | Callable[[Any], timedelta] | None = None,
        until: datetime | Callable[[Any], datetime] | None = None,
        on_deadline: OnDeadline | Target = "fail",
        count: int = 1,
        shared: bool = False,
        payload: Any = Any,
        retries: int | RetryPolicy = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
        then: Target | None = None,
        sensitive: bool = False,
        retain: timedelta | None = None,
    ) -> Decorator:
        """Add a step that waits for an event; its function returns the correlation, as text.

            @refund.wait(event="charge.refunded", within=timedelta(days=3), on_deadline="hold")
            def refunded(run) -> str:
                return run.output("create_refund")["charge"]

        An event is for this wait if tenant, type and correlation are the same, whenever it came:
        one that was there before the wait is taken at once. The output is a `ReceivedEvent`; a
        list of them where `count` is more than 1. No worker is held up meanwhile.

        Args:
            event: the type, or several of which the first one to come counts.
            within: how long from now on, or a function of the run that says so.
            until: when it ends, as a time with its zone, or a function of the run that says so.
            on_deadline: what the run does when nothing came until then: `fail`, `hold` for a
                person, `continue` without an event (the output is None), or go on at the step
                that is named, with the output None. With `count` the output is then a list of
                those that came.
            count: how many events it takes, the oldest first.
            shared: an event that other open waits could take too is given to all of them, if all
                say so; else it is given to none, and a person is asked.
            payload: the type of what the event brings. What does not fit it is held for a person.
        """
        goes_on = way_of("on_deadline", on_deadline)
        options = WaitOptions(
            events=(event,) if isinstance(event, str) else tuple(event),
            within=within,
            until=until,
            on_deadline=goes_on,
            count=count,
            shared=shared,
            payload=payload,
        )
        return self._adder(
            "wait",
            partial(output_of_wait, options=options),
            retry=policy_of(retries),
            timeout=timeout,
            on_failure=on_failure,
            then=then_of(then),
            to=(options.target,) if options.target else (),
            sensitive=sensitive,
            retain=retain,
            wait=options,
        )

    def children(
        self,
        *,
        join: Join = "all",
        at_once: int | None = None,
        leftover: Leftover = "cancel",
        retries: int | RetryPolicy = 0,
        timeout: timedelta = DEFAULT_TIMEOUT,
        on_failure: OnFailure = "fail",
        then: Target | None = None,
        retain: timedelta | None = None,
    ) -> Decorator:
        """Add a step whose function returns the runs to start, as a list of `Child`.

        Its output is a list of `ChildEnd`, in the order of the children. It holds their results:
        it is encrypted where one of them is.

        Args:
            join: when it goes on: `all` when every child has ended, whatever its end; `first`
                with the first that completed, and it fails when none did; `any_failure` when all
                have completed, and it fails as soon as one did not.
            at_once: how many children may be unfinished at a time; no limit by default.
            leftover: `cancel` children that are unfinished when the step is over, or `leave` them.
        """
        return self._adder(
            "children",
            output_of_children,
            retry=policy_of(retries),
            timeout=timeout,
            on_failure=on_failure,
            then=then_of(then),
            children=ChildrenOptions(join, at_once, leftover),
            retain=retain,
        )

    def parallel(
        self,
        *branches: Target | Sequence[Target],
        name: str = "",
        on_failure: OnFailure = "fail",
        then: Target | None = None,
        retain: timedelta | None = None,
    ) -> None:
        """Let branches run side by side, and go on when all have ended.

            flow.parallel(pack, [bill, mail])

        The group is a step by itself, at this place in the written order; the steps that it names
        leave the main line. A branch that is held or fails does not stop the others, only the
        join. Its output is a list of `ChildEnd`, in the order of the branches, with what each gave
        last: it is encrypted where one of those is. A step is in one branch of one group; groups
        do not nest.

        Args:
            branches: two at least, each one step or a list of steps in order.
            name: of the group; by default its branches' first steps joined by `_and_`.
            on_failure: what the run does when a branch failed, once all have ended.
        """
        place = calling_place(above=1)
        for branch in branches:
            self._check_own(branch, place)
        named = tuple(map(names_of, branches))
        if len(named) < FEWEST_BRANCHES or not all(named):
            raise InvalidDefinition(
                f"{place}: a parallel group has at least two branches, each with a step"
            )
        name = name or "_and_".join(branch[0] for branch in named)
        self._add(
            Step(
                name=name,
                kind="parallel",
                function=no_function,
                returns=list[ChildEnd],
                retry=RetryPolicy(),
                timeout=DEFAULT_TIMEOUT,
                on_failure=on_failure,
                place=place,
                title=name.replace("_", " ").capitalize(),
                then=then_of(then),
                branches=named,
                retain=retain,
            )
        )


def way_of(option: str, chosen: OnDeadline | Target) -> str:
    """The word or the step that `option` names.

    Raises:
        InvalidDefinition: a function whose name is one of the words.
    """
    name = name_of(chosen)
    if not isinstance(chosen, str) and name in get_args(OnDeadline):
        raise InvalidDefinition(
            f"{calling_place(above=2)}: {option}= names the step {name!r}, which is a word of "
            "its own there: give the step another name"
        )
    return name


def no_function(_run: Any) -> None:
    raise AssertionError("a parallel group is its branches, and has no function")
