"""What is measured, and the text in which Prometheus reads it (exposition format 0.0.4).

Labels are names that somebody has set up, or states: never an ID, a person or what was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

PREFIX = "romulus_"
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True)
class Sample:
    value: float
    labels: Mapping[str, str]


@dataclass(frozen=True)
class Measure:
    """One thing that is measured. `name` without the prefix; times are in seconds."""

    name: str
    help: str
    samples: tuple[Sample, ...]
    kind: Literal["gauge", "counter"] = "gauge"


def one(name: str, help: str, value: float | None) -> Measure:
    """A measure without labels; without a value there is nothing to measure now."""
    return Measure(name, help, () if value is None else (Sample(float(value), {}),))


def by(name: str, help: str, label: str, values: Iterable[tuple[str, float]]) -> Measure:
    """A measure with one label."""
    samples = (Sample(float(value), {label: str(named)}) for named, value in values)
    return Measure(name, help, tuple(samples))


def as_text(measures: Iterable[Measure]) -> str:
    return "".join(f"{line}\n" for measure in measures for line in lines_of(measure))


def lines_of(measure: Measure) -> Iterator[str]:
    name = f"{PREFIX}{measure.name}"
    yield f"# HELP {name} {escaped(measure.help)}"
    yield f"# TYPE {name} {measure.kind}"
    for sample in measure.samples:
        labels = ",".join(f'{key}="{quoted(value)}"' for key, value in sample.labels.items())
        yield f"{name}{{{labels}}} {sample.value:.10g}" if labels else f"{name} {sample.value:.10g}"


def escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n")


def quoted(text: str) -> str:
    return escaped(text).replace('"', r"\"")
