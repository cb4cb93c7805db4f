"""The product's settings for a process of a test, with what the test changes of them.

TESTS_SETTINGS holds the changes as JSON; a dictionary is merged into what is there. For what the
product itself takes from no environment.
"""

from __future__ import annotations

import json
import os

from romulus_site import settings as product

CHANGES = json.loads(os.environ.get("TESTS_SETTINGS", "{}"))


def changed(name: str, value: object) -> object:
    return getattr(product, name) | value if isinstance(value, dict) else value


globals().update({name: value for name, value in vars(product).items() if name.isupper()})
globals().update({name: changed(name, value) for name, value in CHANGES.items()})


def changing(**changes: object) -> dict[str, str]:
    """The environment of a process that has `changes`."""
    return {"DJANGO_SETTINGS_MODULE": __name__, "TESTS_SETTINGS": json.dumps(changes)}
