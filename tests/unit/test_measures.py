"""What is measured, as Prometheus reads it."""

from __future__ import annotations

from workflows.core.measures import Measure, Sample, as_text, by, one


def test_measures_are_written_in_the_exposition_format() -> None:
    text = as_text(
        [
            one("sweep_lag_seconds", "Since the last sweep.", 1.5),
            by("runs", "Runs.", "state", [("held", 2), ("ready", 0)]),
            Measure("breaches_total", "Breaches.", (Sample(3, {}),), "counter"),
        ]
    )
    assert text.splitlines() == [
        "# HELP romulus_sweep_lag_seconds Since the last sweep.",
        "# TYPE romulus_sweep_lag_seconds gauge",
        "romulus_sweep_lag_seconds 1.5",
        "# HELP romulus_runs Runs.",
        "# TYPE romulus_runs gauge",
        'romulus_runs{state="held"} 2',
        'romulus_runs{state="ready"} 0',
        "# HELP romulus_breaches_total Breaches.",
        "# TYPE romulus_breaches_total counter",
        "romulus_breaches_total 3",
    ]


def test_what_could_end_a_label_or_a_line_is_escaped() -> None:
    text = as_text([by("holds", "a\\b\nc", "queue", [('a"b\\c\nd', 1)])])
    assert "# HELP romulus_holds a\\\\b\\nc" in text
    assert 'romulus_holds{queue="a\\"b\\\\c\\nd"} 1' in text


def test_without_a_value_there_is_nothing_to_measure() -> None:
    assert as_text([one("sweep_lag_seconds", "Since.", None)]).count("\n") == 2
