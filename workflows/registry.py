"""The workflows of this process, filled when the app is ready from `ROMULUS_WORKFLOWS`."""

from __future__ import annotations

from importlib import import_module

from workflows.core.definitions import Registry, workflows_in

registry = Registry()


def load(modules: list[str]) -> None:
    """Make the workflows of `modules` known.

    Raises:
        InvalidDefinition: one of them cannot work; names file and line.
    """
    for name in modules:
        for workflow in workflows_in(vars(import_module(name))):
            registry.add(workflow)
