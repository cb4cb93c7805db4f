"""The ledger, and the destination beside it."""

from __future__ import annotations

import copy
import dataclasses
from uuid import uuid4

from romulus_site.torture.record import Record
from tests.integration.torture.breaking import (
    HELD,
    PAID,
    REFUSED,
    RENTED,
    SECOND,
    TOLD,
    Break,
    each_break,
    ensure_found,
    finds,
    hold_of,
    operation,
    sends,
    without,
)

# --- the ledger -------------------------------------------------------------------------------


@finds("transmissions", "its sends are numbered [2]")
def a_send_is_not_on_record(record: Record) -> None:
    record.transmissions = without(record.transmissions, sends(record, PAID)[0])


@finds("transmissions", "is recorded as on its way")
def a_send_never_ended(record: Record) -> None:
    sends(record, PAID)[1].state = "sending"


@finds("transmissions", "is sending, and its run is over")
def an_operation_is_left_sending(record: Record) -> None:
    operation(record, HELD).state = "sending"


@finds("transmissions", "says fence 77")
def a_send_was_made_under_another_fence(record: Record) -> None:
    sends(record, PAID)[0].fence = 77


@finds("transmissions", "which is not on record")
def a_send_is_nobodys(record: Record) -> None:
    sends(record, PAID)[0].attempt = uuid4()


@finds("transmissions", "and its attempt lasted from")
def a_send_was_made_after_its_attempt(record: Record) -> None:
    sends(record, PAID)[1].started_at += SECOND * 60


@finds("unknown", "nothing fell on its worker or the destination")
def an_outcome_is_unknown_and_the_answer_came(record: Record) -> None:
    operation_of = sends(record, TOLD)[0]
    operation_of.state = "unknown"


@finds("no blind repeat", "is unknown, and repeated")
def a_write_without_a_key_was_repeated(record: Record) -> None:
    again = copy.copy(sends(record, HELD)[0])
    again.pk, again.number = uuid4(), 2
    record.transmissions = [*record.transmissions, again]


@finds("settled", "is held, and its run is past it")
def a_run_is_past_a_write_that_is_not_proven(record: Record) -> None:
    operation(record, TOLD).state = "held"


@finds("settled", "without an operation")
def a_run_is_past_a_write_without_an_operation(record: Record) -> None:
    record.operations = without(record.operations, operation(record, TOLD))


@finds("settled", "is unknown, and its run is failed")
def an_operation_of_a_failed_run_is_not_settled(record: Record) -> None:
    operation(record, REFUSED).state = "unknown"


@finds("evidence", "nothing on record proves it")
def an_operation_is_verified_without_evidence(record: Record) -> None:
    mine = operation(record, PAID).pk
    record.evidence = [row for row in record.evidence if row.operation_id != mine]


@finds("evidence", "no refusal is on record")
def an_operation_is_rejected_without_a_refusal(record: Record) -> None:
    mine = operation(record, REFUSED).pk
    record.evidence = [row for row in record.evidence if row.operation_id != mine]


@finds("evidence", "nobody has decided that")
def an_operation_is_given_up_by_nobody(record: Record) -> None:
    operation(record, HELD).state = "abandoned"


# --- what is held, beside the model -----------------------------------------------------------


@finds("as modelled", "and not held, and by the model it needs a person")
def what_a_person_is_wanted_for_is_not_held(record: Record) -> None:
    operation(record, HELD).state = "unknown"
    record.holds = []


@finds("as modelled", "0 operations are held, and by the model 1 cannot be settled")
def fewer_are_held(record: Record) -> None:
    record.holds = []


@finds("as modelled", "2 operations are held, and by the model 1 cannot be settled")
def more_are_held(record: Record) -> None:
    hold_what_is_settled(record)


@finds("as modelled", "by the model it needs no person: it is settled")
def what_is_settled_is_held(record: Record) -> None:
    hold_what_is_settled(record)


def hold_what_is_settled(record: Record) -> None:
    more = copy.copy(hold_of(record, HELD))
    more.run_id, more.operation_id = operation(record, TOLD).run_id, operation(record, TOLD).pk
    record.holds = [*record.holds, more]


@finds("as modelled", "is rejected, and by the model it is person")
def what_a_person_is_wanted_for_is_ended_without_one(record: Record) -> None:
    operation(record, HELD).state = "rejected"


@finds("as modelled", "its contract permits no such history")
def a_send_was_told_what_its_provider_never_says(record: Record) -> None:
    sends(record, HELD)[0].meaning = "in_flight"


# --- the destination --------------------------------------------------------------------------


@finds("one effect", "has 2 effects")
def an_effect_was_made_twice(record: Record) -> None:
    (first,) = record.effects_of[str(operation(record, PAID).pk)]
    record.effects = [*record.effects, dataclasses.replace(first, resource_id="re_another")]
    vars(record).pop("effects_of")


@finds("truth", "the destination has no effect of it")
def a_verified_operation_has_no_effect(record: Record) -> None:
    mine = str(operation(record, RENTED).pk)
    record.effects = [effect for effect in record.effects if effect.operation != mine]


@finds("truth", "with re_another, and the destination has")
def a_verified_operation_names_another_resource(record: Record) -> None:
    operation(record, PAID).resource = "re_another"


@finds("truth", "is rejected, and the destination has")
def a_rejected_operation_has_an_effect(record: Record) -> None:
    operation(record, PAID).state = "rejected"


@finds("truth", "is not_sent, and arrived")
def what_was_not_sent_has_arrived(record: Record) -> None:
    sends(record, PAID)[0].state = "not_sent"


@finds("truth", "is rejected, and the destination made effect")
def what_was_rejected_has_an_effect(record: Record) -> None:
    sends(record, PAID)[0].state = "rejected"


@finds("truth", "and never arrived")
def what_was_acknowledged_never_arrived(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [entry for entry in record.journal if entry.attempt != mine]


@finds("truth", "and arrived 2 times")
def one_send_arrived_twice(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    more = [entry for entry in record.journal if entry.attempt == mine]
    record.journal = [*record.journal, *more]


@finds("one key", "carried 2 different requests")
def a_key_carried_other_bytes(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [
        dataclasses.replace(entry, body=b"{}") if entry.attempt == mine else entry
        for entry in record.journal
    ]


@finds("one key", "was sent under another")
def an_operation_was_sent_under_two_keys(record: Record) -> None:
    mine = str(sends(record, PAID)[1].pk)
    record.journal = [
        dataclasses.replace(entry, idempotency_key="another") if entry.attempt == mine else entry
        for entry in record.journal
    ]


@finds("nothing unknown", "of an unknown operation")
def the_destination_has_an_effect_of_nobody(record: Record) -> None:
    record.effects = [*record.effects, dataclasses.replace(record.effects[0], operation="another")]


@finds("nothing unknown", "which is not on record")
def something_left_before_it_was_on_record(record: Record) -> None:
    record.transmissions = without(record.transmissions, sends(record, PAID)[0])


@each_break(__name__)
def test_what_is_broken_is_found(record: Record, check: str, words: str, do: Break) -> None:
    ensure_found(record, check, words, do)
