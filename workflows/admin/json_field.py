"""JSON that is typed into the admin: what cannot be read or stored is said at its field."""

from __future__ import annotations

import json
from typing import Any

from django import forms
from django.forms.fields import InvalidJSONInput

from workflows.core.source_rules import can_be_kept

NESTED = "This is nested too deeply."
TOO_LONG = "A number in it has too many digits."
UNSTORABLE = "It holds NUL, half a surrogate pair, NaN or Infinity: none can be stored."


def where_it_ends(text: object) -> str:
    """Where something stops to be JSON, for whoever typed it."""
    try:
        json.loads(str(text))
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, character {error.colno}"
        return f"This is no JSON from {place} on: {error.msg}. Texts stand in double quotes."
    return "This is no JSON."


class TypedJson(forms.JSONField):
    def to_python(self, value: Any) -> Any:
        try:
            read = super().to_python(value)
            kept = can_be_kept(read)
        except RecursionError as error:
            raise forms.ValidationError(NESTED) from error
        except forms.ValidationError as error:
            raise forms.ValidationError(where_it_ends(value)) from error
        except ValueError as error:  # of Python's own, which reads no number of any length
            raise forms.ValidationError(TOO_LONG) from error
        if not kept:
            raise forms.ValidationError(UNSTORABLE)
        return read

    def bound_data(self, data: Any, initial: Any) -> Any:
        """Shown again as it was typed: what is wrong with it may be what JSON cannot print."""
        if self.disabled or data is None:
            return super().bound_data(data, initial)
        return InvalidJSONInput(data)
