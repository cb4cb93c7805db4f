"""The options that several measurements share."""

from __future__ import annotations

import argparse

from workflows.management.base import positive

IN_FLIGHT = (1, 16)


def add_walk_arguments(
    parser: argparse.ArgumentParser, *, runs: int = 64, repeats: int = 5
) -> None:
    parser.add_argument(
        "--in-flight",
        type=positive,
        nargs="+",
        default=list(IN_FLIGHT),
        metavar="N",
        help="runs at work at once; several numbers are measured in turn (default: 1 16)",
    )
    parser.add_argument("--runs", type=positive, default=runs, help="runs of each walk")
    # Two or more: what a step costs is the difference that more of them make.
    parser.add_argument("--steps", type=two_or_more, default=50, help="steps of each run")
    parser.add_argument(
        "--repeats",
        type=positive,
        default=repeats,
        help=f"walks that count, after one that does not (default: {repeats})",
    )
    parser.add_argument(
        "--workers", type=positive, default=1, help="processes that share the runs in flight"
    )


def two_or_more(text: str) -> int:
    """An argument of which one is not enough."""
    number = positive(text)
    if number == 1:
        raise argparse.ArgumentTypeError("one is not enough: two or more")
    return number
