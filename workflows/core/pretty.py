"""JSON set out for reading, character for character: nothing is parsed, so nothing is rounded."""

from __future__ import annotations

INDENT = "  "


def pretty_json(text: str) -> str:
    """Return `text`, which is valid JSON, with a line for each part.

    White space between parts is made anew; what stands in the parts is left as it is, so that a
    number of thirty digits and an escaped letter are shown as they came.
    """
    out: list[str] = []
    depth, at = 0, 0
    while at < len(text):
        each = text[at]
        if each == '"':
            end = end_of_string(text, at)
            out.append(text[at:end])
            at = end
            continue
        if each in "{[":
            closed = closes_at_once(text, at)
            if closed:
                out.append(each + text[closed])
                at = closed + 1
                continue
            depth += 1
            out.append(f"{each}\n{INDENT * depth}")
        elif each in "}]":
            depth -= 1
            out.append(f"\n{INDENT * depth}{each}")
        elif each == ",":
            out.append(f",\n{INDENT * depth}")
        elif each == ":":
            out.append(": ")
        elif not each.isspace():
            out.append(each)
        at += 1
    return "".join(out)


def end_of_string(text: str, start: int) -> int:
    at = start + 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


def closes_at_once(text: str, start: int) -> int:
    """Where an empty object or list closes; 0 for one that holds something."""
    at = start + 1
    while at < len(text) and text[at].isspace():
        at += 1
    return at if at < len(text) and text[at] in "}]" else 0
