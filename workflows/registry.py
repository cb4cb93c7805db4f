"""The workflows of this process, filled when the app is ready from `ROMULUS_WORKFLOWS`."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

from workflows.core.definitions import Registry, workflows_in
from workflows.core.errors import InvalidDefinition

registry = Registry()


def load(modules: list[str]) -> None:
    """Make the workflows of `modules` known.

    Raises:
        InvalidDefinition: a module is not there or has none, or one of its workflows cannot work;
            names the module, or file and line.
    """
    for name in modules:
        found = workflows_in(vars(imported(name)))
        if not found:
            raise InvalidDefinition(f"ROMULUS_WORKFLOWS: module {name!r} has no workflow in it")
        for workflow in found:
            registry.add(workflow)


def imported(name: str) -> ModuleType:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # it is there, and what it imports itself is not
        raise InvalidDefinition(
            f"ROMULUS_WORKFLOWS: there is no module {name!r} on Python's path"
        ) from error
