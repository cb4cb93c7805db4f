"""Which queue a hold goes to, and who sees and decides it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from guardian.shortcuts import assign_perm

from reconciliation import access
from reconciliation.core.facts import HOLD_SENTENCES, HoldReason
from reconciliation.core.states import DecisionKind
from reconciliation.models import (
    AuditEntry,
    Hold,
    Operation,
    Provider,
    ReviewQueue,
    Transmission,
)
from reconciliation.sealing import seal
from reconciliation.services.decisions import Answer, record_decision
from reconciliation.services.holds import DUE_WITHOUT_QUEUE, open_hold, queue_for
from reconciliation.services.providers import missing_of
from reconciliation.services.reconcile import ask_again
from tests.destination import RunningDestination
from tests.factories import (
    NOTE,
    PERSONALITIES,
    advanced,
    code_of,
    held_operation,
    open_hold_of,
    owner_of,
    person,
    quick_contract,
    ready_provider,
    settled,
    started_run,
    tenant,
)
from workflows.models import Run, Tenant
from workflows.services.clock import database_now
from workflows.services.runs import start

pytestmark = pytest.mark.django_db


@pytest.fixture
def operation() -> Operation:
    """An operation of tenant northwind at provider payments, which waits for dispatch."""
    ready_provider("machines")
    ready_provider("payments", dispatch="paused")
    advanced(started_run("refund"))
    ReviewQueue.objects.all().update(action="no such action")  # takes nothing by itself
    return Operation.objects.select_related("provider__default_queue", "run").get()


def queue(slug: str, **takes: Any) -> ReviewQueue:
    return ReviewQueue.objects.create(slug=slug, name=slug, **takes)


NAMED: dict[str, dict[str, Any]] = {
    "any": {},
    "tenant": {"tenant": "northwind"},
    "provider": {"provider": "payments"},
    "provider+tenant": {"provider": "payments", "tenant": "northwind"},
    "action": {"action": "refunds.create"},
    "action+provider": {"action": "refunds.create", "provider": "payments"},
    "all": {"action": "refunds.create", "provider": "payments", "tenant": "northwind"},
    "other tenant": {"tenant": "southbay"},
    "other provider": {"provider": "machines"},
    "other action": {"action": "refunds.cancel"},
    "other tenant, same action": {"action": "refunds.create", "tenant": "southbay"},
}


def make(name: str) -> ReviewQueue:
    takes = dict(NAMED[name])
    if "tenant" in takes:
        takes["tenant"] = tenant(takes["tenant"])
    if "provider" in takes:
        takes["provider"] = Provider.objects.get(slug=takes["provider"])
    return queue(name.replace(" ", "-").replace("+", "-").replace(",", ""), **takes)


@pytest.mark.parametrize(
    ("there_are", "takes"),
    [
        (["any", "tenant"], "tenant"),
        (["any", "tenant", "provider"], "provider"),
        (["tenant", "provider", "provider+tenant"], "provider+tenant"),
        (["provider+tenant", "action"], "action"),
        (["action", "action+provider", "provider+tenant"], "action+provider"),
        (["all", "action+provider", "any"], "all"),
        (["other tenant", "other action", "tenant"], "tenant"),
        (["other tenant, same action", "tenant"], "tenant"),
    ],
)
def test_the_most_specific_queue_takes_it(
    operation: Operation, there_are: list[str], takes: str
) -> None:
    made = {name: make(name) for name in there_are}
    assert queue_for(operation.run.tenant_id, operation) == made[takes]


@pytest.mark.parametrize("there_are", [[], ["other tenant", "other action", "other provider"]])
def test_where_no_queue_takes_it_the_provider_s_own_does(
    operation: Operation, there_are: list[str]
) -> None:
    for name in there_are:
        make(name)
    assert queue_for(operation.run.tenant_id, operation) == operation.provider.default_queue


def test_a_provider_s_own_queue_goes_before_one_that_takes_anything(operation: Operation) -> None:
    assert not make("any").owners.exists()
    assert queue_for(operation.run.tenant_id, operation) == operation.provider.default_queue


def test_a_queue_of_another_tenant_takes_nothing_though_it_is_the_provider_s_own(
    operation: Operation,
) -> None:
    own = operation.provider.default_queue
    assert own is not None
    own.tenant = tenant("southbay")
    own.save()
    assert queue_for(operation.run.tenant_id, operation) is None


def test_a_held_run_goes_to_a_queue_that_takes_any_provider_and_action(
    operation: Operation,
) -> None:
    for name in ("provider", "action", "all"):
        make(name)
    assert queue_for(operation.run.tenant_id, None) is None
    general = make("any")
    assert queue_for(operation.run.tenant_id, None) == general


def test_a_held_run_goes_to_its_tenant_s_own_queue_first(operation: Operation) -> None:
    make("any")
    own = make("tenant")
    assert queue_for(operation.run.tenant_id, None) == own


# --- opening ----------------------------------------------------------------------------------


def test_a_hold_is_due_when_its_queue_says_and_is_audited(operation: Operation) -> None:
    taking = queue("slow", due_after=timedelta(days=2))
    hold = open_hold(operation.run_id, operation, taking, "unguarded", "Because.")
    hold.refresh_from_db()
    assert abs(hold.due_at - hold.opened_at - timedelta(days=2)) < timedelta(seconds=1)
    entry = AuditEntry.objects.order_by("-seq")[0]
    assert (entry.actor, entry.verb, entry.object) == (
        "system",
        "held",
        f"operation:{operation.pk}",
    )


def test_nobody_s_hold_is_due_soon(operation: Operation) -> None:
    hold = open_hold(operation.run_id, None, None, "workers_lost", "Because.")
    assert abs(hold.due_at - database_now() - DUE_WITHOUT_QUEUE) < timedelta(seconds=5)


def test_every_held_run_has_exactly_one_open_hold(destination: RunningDestination) -> None:
    """Each way into a hold: a write's outcome, a step's failure, a provider without contract."""
    ready_provider("desk", destination.url)
    ready_provider("payments", destination.url, contract_version=None)
    held_operation(destination)
    advanced(started_run("refund"))
    missing = started_run("refund")
    Run.objects.filter(pk=missing.pk).update(step="gone")
    advanced(missing)
    held = Run.objects.filter(state="held")
    assert held.count() == 3
    for run in held:
        assert run.holds.filter(state="open").count() == 1


@pytest.mark.parametrize("reason", list(HoldReason))
def test_every_reason_says_what_is_known_and_what_would_settle_it(reason: HoldReason) -> None:
    sentence = HOLD_SENTENCES[reason]
    assert sentence.known.endswith(".")
    assert sentence.settles.endswith(".")
    assert len(reason) <= 40  # its column


def test_proof_that_arrives_while_a_write_is_held_closes_its_hold(
    destination: RunningDestination,
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm("lookup_unavailable", times=None)
    operation = held_operation(destination, "replacement_worker")
    hold = open_hold_of(operation)
    destination.client.disarm()
    ask_again(operation.pk)
    hold.refresh_from_db()
    assert (hold.state, hold.closed_at is not None) == ("closed", True)
    assert AuditEntry.objects.filter(verb="hold closed by proof").count() == 1
    assert settled(operation.run).state == "completed"


@pytest.mark.parametrize(
    "plan",
    [
        "postcondition",
        pytest.param(
            "postcondition, apply_then_drop",
        ),
    ],
)
def test_a_result_that_is_not_as_meant_is_held_however_it_was_learnt(
    destination: RunningDestination, plan: str
) -> None:
    ready_provider("machines", destination.url)
    destination.client.arm(plan)
    run = settled(started_run("replacement_worker"))
    operation = Operation.objects.get()
    assert (run.state, operation.state) == ("held", "postcondition_failed")
    assert open_hold_of(operation).reason == "postcondition_failed"


def test_records_that_disagree_after_a_result_was_accepted_are_held_again(
    destination: RunningDestination,
) -> None:
    """The provider was asked before the decision, and answers after it."""
    ready_provider("machines", destination.url)
    destination.client.arm("postcondition")
    run = advanced(started_run("replacement_worker"))
    operation = Operation.objects.get()
    hold = open_hold_of(operation)
    answer = Answer(
        DecisionKind.APPLIED, NOTE, hold.version, uuid4(), code_of(operation.pk), resource="m_1"
    )
    record_decision(hold.pk, person(), answer)
    destination.client.arm("lookup_wrong_scope", method="GET")
    ask_again(operation.pk)
    assert operation.evidence.filter(kind="conflict").exists()
    assert advanced(run).state == "held"
    assert open_hold_of(operation).reason == "conflict"


# --- who sees and decides it ------------------------------------------------------------------


@pytest.fixture
def hold(destination: RunningDestination) -> Hold:
    ready_provider("desk", destination.url)
    return open_hold_of(held_operation(destination))


def superuser() -> Any:
    return person("admin_1", is_superuser=True)


def test_its_owner_sees_and_decides_it(hold: Hold) -> None:
    assert list(access.open_holds(person())) == [hold]
    assert access.may_decide(person(), hold)


def test_who_has_no_right_sees_none_and_decides_nothing(hold: Hold) -> None:
    viewer = person("viewer_1")
    assert not access.open_holds(viewer).exists()
    with pytest.raises(PermissionDenied, match="its queue's owners decide it"):
        access.ensure_may_decide(viewer, hold)


@pytest.mark.parametrize("missing", ["queue", "tenant"])
def test_both_the_queue_and_the_tenant_must_be_visible(hold: Hold, missing: str) -> None:
    viewer = person("viewer_1")
    if missing != "queue":
        assign_perm("reconciliation.view_reviewqueue", viewer, hold.queue)
    if missing != "tenant":
        assign_perm("workflows.view_tenant", viewer, hold.run.tenant)
    assert not access.open_holds(person("viewer_1")).exists()


def test_who_may_see_a_queue_may_not_decide_by_that(hold: Hold) -> None:
    viewer = person("viewer_1")
    assign_perm("reconciliation.view_reviewqueue", viewer, hold.queue)
    assign_perm("workflows.view_tenant", viewer, hold.run.tenant)
    viewer = person("viewer_1")
    assert list(access.open_holds(viewer)) == [hold]
    assert not access.may_decide(viewer, hold)


def test_a_right_may_be_held_through_a_group_and_ends_with_it(hold: Hold) -> None:
    approvers = Group.objects.create(name="finance-approvers")
    assign_perm("reconciliation.decide", approvers, hold.queue)
    member = person("reviewer_2")
    member.groups.add(approvers)
    assert access.may_decide(person("reviewer_2"), hold)
    member.groups.remove(approvers)
    assert not access.may_decide(person("reviewer_2"), hold)
    # A21: one of the same name is another one
    approvers.delete()
    person("reviewer_2").groups.add(Group.objects.create(name="finance-approvers"))
    assert not access.may_decide(person("reviewer_2"), hold)


def test_nobody_s_hold_is_seen_and_decided_by_administrators_alone(hold: Hold) -> None:
    Hold.objects.filter(pk=hold.pk).update(queue=None)
    hold.refresh_from_db()
    assert list(access.open_holds(superuser())) == [hold]
    assert access.may_decide(superuser(), hold)
    assert not access.open_holds(person()).exists()
    assert not access.may_decide(person(), hold)


def test_the_hold_of_another_tenant_is_not_seen(hold: Hold) -> None:
    southbay = Tenant.objects.create(slug="southbay", name="Southbay")
    Run.objects.filter(pk=hold.run_id).update(tenant=southbay)
    assert not access.open_holds(person()).exists()


def test_an_owner_who_may_not_decide_is_no_owner() -> None:
    provider = ready_provider("desk")
    assert provider.default_queue is not None
    provider.default_queue.owners.set([person("viewer_1")])
    assert any("an owner" in lack for lack in missing_of(provider))


@pytest.mark.parametrize("how", ["on it", "by a group", "on all", "on all, by a group"])
def test_an_owner_who_may_not_see_the_tenant_is_none_of_its_writes(how: str) -> None:
    """What they could not see would stop in silence, with a queue that says it is theirs."""
    provider = ready_provider("desk")
    southbay = Tenant.objects.create(slug="southbay", name="Southbay")
    assert missing_of(provider, tenant().pk) == ()
    (lack,) = missing_of(provider, southbay.pk)
    assert lack.startswith("an owner:")
    assert "may see this tenant" in lack

    group = Group.objects.create(name="Owners")
    person().groups.add(group)
    whom = group if "group" in how else person()
    assign_perm("workflows.view_tenant", whom, southbay if "all" not in how else None)
    assert missing_of(provider, southbay.pk) == ()


def test_a_write_for_a_tenant_that_no_owner_may_see_is_held_and_not_sent() -> None:
    ready_provider("desk")
    southbay = Tenant.objects.create(slug="southbay", name="Southbay")
    ticket = {"number": "T-17", "subject": "A refund", "body": "Where is it?"}
    run = advanced(start("ticket_triage", ticket, tenant=southbay))
    hold = Hold.objects.get()
    assert (run.state, hold.reason) == ("held", HoldReason.NOT_READY)
    assert "may see this tenant" in hold.message
    assert not Transmission.objects.exists()


def test_settings_that_say_how_a_credential_is_shown_need_one() -> None:
    auth = {"scheme": "header", "header": "X-Api-Key"}
    provider = ready_provider("desk")
    provider.settings = provider.settings | {"auth": auth}
    assert any("a credential: the settings say" in lack for lack in missing_of(provider))
    provider.credential_sealed = seal(b"secret")
    assert missing_of(provider) == ()


def test_a_provider_whose_only_owner_has_left_is_not_ready() -> None:
    provider = ready_provider("desk")
    assert missing_of(provider) == ()
    reviewer = person()
    reviewer.is_active = False
    reviewer.save()
    assert any("an owner" in lack for lack in missing_of(provider))
    assert provider.default_queue is not None
    owner_of(provider.default_queue, "reviewer_2")
    assert missing_of(provider) == ()


@pytest.mark.parametrize(
    ("slug", "contract", "drop", "says"),
    [
        ("machines", {}, "look_up", "the contract has look-ups and the action has none"),
        ("machines", {}, "verify", "the contract has a check of the result and the action has"),
        (
            "payments",
            {"key": {"carrier": "header", "name": "Idempotency-Key", "max_length": 20}},
            "",
            "keys have 20 characters at most, ours 36",
        ),
    ],
)
def test_a_provider_that_cannot_do_what_its_contract_claims_is_not_ready(
    slug: str, contract: dict[str, Any], drop: str, says: str
) -> None:
    kind = PERSONALITIES[slug]
    provider = ready_provider(slug, contract_version=quick_contract(kind, **contract))
    provider.refresh_from_db()  # its settings are its own from here on
    for action in provider.settings["actions"].values():
        action.pop(drop, None)
    assert any(says in lack for lack in missing_of(provider))
