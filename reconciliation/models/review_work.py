"""What people do around a held case before somebody decides it: what they said, when they want to
be reminded, the views they keep, and what they do to many cases at once. None of it decides."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from reconciliation.core.review_work import BulkKind, ItemState, NoteKind
from reconciliation.models.hold import Hold
from reconciliation.models.queue import ReviewQueue
from workflows.models.ids import new_id


class CaseNote(models.Model):
    """Something said about a held case; never edited (by trigger), as what a decision rests on."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="notes")
    kind = models.CharField(max_length=16)
    text = models.TextField()
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    by_name = models.CharField(max_length=320)  # as shown then: outlives a renamed account
    # Who is asked, or whom the case was handed to.
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    to_name = models.CharField(max_length=320, blank=True)
    # A question is answered once; what is said after that is a comment.
    question = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="answer"
    )
    token = models.UUIDField(unique=True)  # of the form: submitting it twice says it once
    at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="case_note_kind_known",
                condition=Q(kind__in=[kind.value for kind in NoteKind]),
            ),
            models.CheckConstraint(
                name="case_note_answers_iff_answer",
                condition=Q(kind=NoteKind.ANSWER, question__isnull=False)
                | (~Q(kind=NoteKind.ANSWER) & Q(question__isnull=True)),
            ),
        ]
        indexes = [
            # The thread of a case, and what its row in the queue tells of it.
            models.Index(name="case_note_thread", fields=["hold", "at", "id"]),
            # What somebody is asked: the view of the queue.
            models.Index(
                name="case_note_questions", fields=["to", "hold"], condition=Q(kind="question")
            ),
        ]


class Reminder(models.Model):
    """That somebody wants to hear of a case again, at a time. It moves nothing of the case."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="reminders")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="reminders"
    )
    at = models.DateTimeField()
    made_at = models.DateTimeField(db_default=Now())
    told_at = models.DateTimeField(null=True)  # a message went out; the queue shows it all the same
    ended_at = models.DateTimeField(null=True)  # the person has seen to it

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="reminder_one_open_per_person",
                fields=["hold", "person"],
                condition=Q(ended_at=None),
            ),
        ]
        indexes = [
            # What is to be told now.
            models.Index(
                name="reminder_due",
                fields=["at"],
                condition=Q(told_at__isnull=True, ended_at__isnull=True),
            ),
        ]


class SavedView(models.Model):
    """A way to see the queue, kept under a name: by one person, or for the owners of a queue."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    name = models.CharField(max_length=60)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True, related_name="saved_views"
    )
    queue = models.ForeignKey(
        ReviewQueue, on_delete=models.CASCADE, null=True, related_name="saved_views"
    )
    query = models.CharField(max_length=1000, blank=True)  # as in the address
    made_by = models.CharField(max_length=320)
    made_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="saved_view_of_a_person_or_a_queue",
                condition=Q(person__isnull=False, queue__isnull=True)
                | Q(person__isnull=True, queue__isnull=False),
            ),
            models.UniqueConstraint(name="saved_view_name_per_person", fields=["person", "name"]),
            models.UniqueConstraint(name="saved_view_name_per_queue", fields=["queue", "name"]),
        ]


class BulkAction(models.Model):
    """The same small thing done to many cases, as it was confirmed; carried out in the background.

    Its items are the set that was confirmed: what comes to the queue after that is not in it.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    kind = models.CharField(max_length=16)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+")
    token = models.UUIDField(unique=True)  # of the plan: confirming it twice does it once
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, null=True, related_name="+"
    )
    until = models.DateTimeField(null=True)  # snoozed until, or reminded at
    made_at = models.DateTimeField(db_default=Now())
    # Until when a process has it for itself; one that dies gives it back by that.
    taken_until = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="bulk_action_kind_known",
                condition=Q(kind__in=[kind.value for kind in BulkKind]),
            ),
        ]
        indexes = [
            # What the sweep hints at again.
            models.Index(
                name="bulk_action_open", fields=["made_at"], condition=Q(ended_at__isnull=True)
            ),
        ]


class BulkItem(models.Model):
    """One case of a bulk action, and what came of it."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    action = models.ForeignKey(BulkAction, on_delete=models.CASCADE, related_name="items")
    hold = models.ForeignKey(Hold, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()  # its place, from 1
    had = models.IntegerField(null=True)  # the ID of whose it was in the plan; None: nobody's
    state = models.CharField(max_length=8, default=ItemState.PENDING)
    said = models.CharField(max_length=500, blank=True)
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="bulk_item_state_known",
                condition=Q(state__in=[state.value for state in ItemState]),
            ),
            models.CheckConstraint(
                name="bulk_item_ended_iff_ended_at",
                condition=Q(state=ItemState.PENDING, ended_at__isnull=True)
                | (~Q(state=ItemState.PENDING) & Q(ended_at__isnull=False)),
            ),
            models.UniqueConstraint(name="bulk_item_once", fields=["action", "hold"]),
            models.UniqueConstraint(name="bulk_item_number", fields=["action", "number"]),
        ]
