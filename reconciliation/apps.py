"""Brings writes, holds, their sweep and their part of run pages to the execution record."""

from __future__ import annotations

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class ReconciliationConfig(AppConfig):
    name = "reconciliation"
    verbose_name = "Operations and review"

    def ready(self) -> None:
        from reconciliation.selectors.run_parts import run_parts
        from reconciliation.selectors.run_rows import ROWS
        from reconciliation.services.addressing import pass_on
        from reconciliation.services.audit import actors_of, add_entry
        from reconciliation.services.bulk import hint_open_actions
        from reconciliation.services.decision_points import ask_decision_point
        from reconciliation.services.dispatch import end_stops
        from reconciliation.services.escalating import (
            begin_digests,
            escalate_holds,
            tell_reminders,
        )
        from reconciliation.services.event_holds import EventHolds
        from reconciliation.services.holds import open_run_hold
        from reconciliation.services.reconcile import hint_due_operations
        from reconciliation.services.renewals import Renewals
        from reconciliation.services.run_end import OpenParts
        from reconciliation.services.write_step import execute_write
        from workflows.selectors.run_parts import register_run_parts
        from workflows.services.audit import register_reader, register_recorder
        from workflows.services.decision_points import register_decision_points
        from workflows.services.event_holds import register_event_holds
        from workflows.services.kinds import register_kind
        from workflows.services.renewals import register_renewals
        from workflows.services.run_holds import register_hold_opener
        from workflows.services.settling import register_open
        from workflows.services.sweep import register_duty

        register_kind("write", execute_write)
        register_hold_opener(open_run_hold)
        register_event_holds(EventHolds())
        register_decision_points(ask_decision_point)
        register_duty(hint_due_operations)
        register_duty(end_stops)
        register_duty(hint_open_actions)
        register_duty(escalate_holds)
        register_duty(begin_digests)
        register_duty(tell_reminders)
        register_duty(pass_on)
        register_recorder(add_entry)
        register_reader(actors_of)
        register_open(OpenParts())
        register_renewals(Renewals())
        register_run_parts(run_parts, ROWS)
        post_migrate.connect(load_contracts, sender=self)


def load_contracts(**_: Any) -> None:
    """Make every shipped contract version known, after each migration."""
    from reconciliation.services.contracts import load_shipped

    load_shipped()
