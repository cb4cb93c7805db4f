"""How a command's answer is written, whoever reads it."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator

import pytest
from django.core.management.base import OutputWrapper

from workflows.management.base import ConsoleCommand


def many(written: list[int]) -> Iterator[str]:
    for number in range(100_000):
        written.append(number)
        yield f"line {number}\x1b[31m"


@pytest.mark.parametrize("as_json", [False, True])
def test_a_reader_who_has_read_enough_ends_the_answer_without_an_error(as_json: bool) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = ConsoleCommand()
    written: list[int] = []

    with os.fdopen(writing, "w") as out:
        command.stdout = OutputWrapper(out)
        command.answer(argparse.Namespace(json=as_json), list(range(1000)), many(written))

    assert len(written) < 100_000


def test_lines_do_not_steer_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    command = ConsoleCommand()

    command.answer(argparse.Namespace(json=False), None, ["red \x1b[31m"])

    assert capfd.readouterr().out == "red  [31m\n"
