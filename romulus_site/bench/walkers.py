"""The bench's side of a walk: orders it, and reads the counters before, after and at the end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from romulus_site.bench.costs import Costs, Gauge, cpu_between
from romulus_site.bench.database import Server
from romulus_site.bench.proxy import CountingProxy
from romulus_site.bench.talk import Child

MS = 1000.0


class NotDone(Exception):
    """The engine left some of the runs unfinished: the figures would mean nothing."""


class Walkers:
    """Processes of one kind that walk at the same time."""

    def __init__(
        self, children: Sequence[Child], gauge: Gauge, proxy: CountingProxy | None = None
    ) -> None:
        self._children = children
        self._gauge = gauge
        self._proxy = proxy

    def walk(self, *, in_flight: int, runs: int, steps: int) -> Costs:
        """Walk `runs` of `steps` steps, `in_flight` at once, and return what all of it cost."""
        children = self._children[: min(in_flight, runs)]
        shares = zip(
            children, parts(in_flight, len(children)), parts(runs, len(children)), strict=True
        )
        for child, threads, share in shares:
            child.tell({"in_flight": threads, "runs": share, "steps": steps})
        for child in children:
            child.hear()
        return self._measured(children, in_flight)

    def _measured(self, children: Sequence[Child], in_flight: int) -> Costs:
        commits, before, trips = self._gauge.commits(), self._gauge.read(), self._trips()
        figures = all_of(children)
        after, trips = self._gauge.read(), self._trips() - trips
        all_of(children)
        self._gauge.wait_until_gone(after.backends, in_flight)
        commits = self._gauge.commits() - commits
        if undone := sum(answer["undone"] for answer in all_of(children)):
            raise NotDone(f"{undone:.0f} of what was ordered was not done; nothing was measured")
        database_cpu = cpu_between(before, after)
        return {
            "milliseconds": max(figure["seconds"] for figure in figures) * MS,
            "round_trips": float(trips) if self._proxy else None,
            "commits": float(commits),
            **self._gauge.wal(before, after),
            "worker_cpu_ms": sum(figure["cpu_seconds"] for figure in figures) * MS,
            "database_cpu_ms": None if database_cpu is None else database_cpu * MS,
        }

    def _trips(self) -> int:
        return self._proxy.trips if self._proxy else 0


def all_of(children: Sequence[Child]) -> list[dict[str, float]]:
    """Let all go on at once, and return what each says when it is done."""
    for child in children:
        child.tell({})
    return [child.hear() for child in children]


def parts(whole: int, number: int) -> list[int]:
    """Return `whole` in `number` parts that differ by one at most."""
    return [whole // number + (place < whole % number) for place in range(number)]


@contextmanager
def walkers(
    kind: str,
    server: Server,
    database: str,
    gauge: Gauge,
    *,
    steps: int,
    processes: int = 1,
    proxy: CountingProxy | None = None,
) -> Iterator[Walkers]:
    """Give `processes` processes of that kind, which end after."""
    variables = {"broker": "memory://", "steps": str(steps)}
    if proxy:
        variables["proxy"] = str(proxy.port)
    environment = server.environment_of(database, **variables)
    with ExitStack() as stack:
        children = [
            stack.enter_context(Child(kind, environment, server.folder / f"{kind}-{number}.log"))
            for number in range(1, processes + 1)
        ]
        yield Walkers(children, gauge, proxy)
