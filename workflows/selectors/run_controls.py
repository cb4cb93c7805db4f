"""What a reader may do to a run, and what is asked before it is done."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.urls import reverse

from workflows.core.controls import Control, consequence, offered
from workflows.core.run_facts import RunFacts
from workflows.models import Run
from workflows.pages import Confirmation, ControlLink
from workflows.selectors.explanations import facts_about
from workflows.selectors.run_children import link_to, unfinished_children
from workflows.services.settling import unsettled

LOOKS = {
    Control.PAUSE: ("Pause the run…", "pause"),
    Control.RESUME: ("Resume the run…", "play"),
    Control.CANCEL: ("Cancel the run…", "cancelled"),
}


def controls_of(run: Run, facts: RunFacts) -> tuple[ControlLink, ...]:
    """What can be done to the run now, for somebody who may."""
    return tuple(
        ControlLink(control.value, LOOKS[control][0], url_of(run, control), LOOKS[control][1])
        for control in offered(facts)
    )


def url_of(run: Run, control: Control) -> str:
    return reverse(f"run_{control}", args=[run.pk])


def confirmation_of(run: Run, control: Control, now: datetime) -> Confirmation:
    """What happens when `control` is carried out now, whatever the run's state."""
    facts = replace(facts_about(run), unsettled=unsettled(run.pk))
    said = consequence(control, facts, now, started=unfinished_children(run))
    return Confirmation(
        run=link_to(run),
        url=url_of(run, control),
        title=said.title,
        happens=said.happens,
        stays=said.stays,
        button=said.button,
        keep=said.keep,
        grave=said.grave,
        paused_at=run.paused_at.isoformat() if run.paused_at else "",
    )
