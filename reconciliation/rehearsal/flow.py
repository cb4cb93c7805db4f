"""The workflow that a rehearsal runs: one write, and a step that may only come after it."""

from __future__ import annotations

import re

from workflows.core.definitions import Workflow
from workflows.core.intents import Intent
from workflows.registry import registry
from workflows.services.run_view import RunView

WRITE = "write"


def flow_of(provider: str) -> Workflow:
    """The workflow that writes to the provider of that slug."""
    flow = Workflow("rehearsal.of_" + re.sub(r"[^a-z0-9_]", "_", provider.lower()))

    @flow.write(provider=provider)
    def write(run: RunView) -> Intent:
        """Make the rehearsed write"""
        given = run.input
        return Intent(
            action=given["action"],
            target=f"rehearsal {given['unique']}",
            parameters=given["parameters"],
            summary=f"Rehearse {given['case']} with {given['action']}",
        )

    @flow.step()
    def go_on(run: RunView) -> str:
        """Go on with what was made"""
        resource: str = run.output(WRITE)["resource"]
        return resource

    return flow


def known_flow(provider: str) -> Workflow:
    """Make the workflow known to this process, once; return it."""
    flow = flow_of(provider)
    if (flow.name, flow.version) not in registry.pairs():
        registry.add(flow)
    return flow
