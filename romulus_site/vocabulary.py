"""The state vocabulary of the console: for each kind of thing, its states as people see them.

One table. Code, columns and URLs use the keys; pages show the word, the tone and the icon, always
together, so that no state speaks by colour alone. Fill says what we know: solid is a fact,
hatched is not known, a dashed edge was cut off or replaced.
"""

from __future__ import annotations

from dataclasses import dataclass

TONES = frozenset({"quiet", "move", "wait", "hold", "unk", "good", "bad"})


@dataclass(frozen=True, slots=True)
class Word:
    """How one state is shown. `icon` is a symbol of static/img/icons.svg, without its `i-`."""

    text: str
    tone: str
    icon: str
    meaning: str
    hatched: bool = False
    cut: bool = False
    heading: str = ""  # the words in a page's header, where they differ

    @property
    def classes(self) -> str:
        """The CSS classes that paint it."""
        marks = [f"tone-{self.tone}"]
        if self.hatched:
            marks.append("hatched")
        if self.cut:
            marks.append("cut")
        return " ".join(marks)


UNKNOWN = Word(
    "Unknown",
    "unk",
    "unknown",
    "sent, and nobody knows the outcome",
    hatched=True,
    heading="Outcome unknown",
)
HELD = Word("Held", "hold", "held", "waits for a person's decision")
SENDING = Word("Sending", "move", "sending", "bytes are leaving")
CANCELLED = Word("Cancelled", "quiet", "cancelled", "stopped by a person")
MATCH = Word("Match", "good", "match", "a record that is ours")
NO_MATCH = Word("No match", "quiet", "no_match", "looked, found nothing")
OVERTAKEN = Word("Overtaken", "quiet", "superseded", "somebody decided first", cut=True)

VOCABULARY: dict[str, dict[str, Word]] = {
    "run": {
        "ready": Word("Ready", "quiet", "ready", "queued; a worker will take it"),
        "running": Word("Running", "move", "running", "a worker holds it now"),
        "waiting": Word("Waiting", "wait", "waiting", "waits for an event, a time or an answer"),
        "held": HELD,
        "completed": Word("Completed", "good", "completed", "every step is committed"),
        "failed": Word("Failed", "bad", "failed", "a step failed for a known reason"),
        "cancelled": CANCELLED,
    },
    "attempt": {
        "running": Word("Running", "move", "running", "a worker is on it"),
        "committed": Word("Committed", "good", "committed", "its result counts"),
        "failed": Word("Failed", "bad", "failed", "ended with a known error"),
        "lost": Word("Lost", "unk", "lost", "its worker went quiet", cut=True),
        "superseded": Word(
            "Superseded",
            "quiet",
            "superseded",
            "a newer try took over; its writes are refused",
            cut=True,
        ),
    },
    "transmission": {
        "sending": SENDING,
        "acknowledged": Word("Acknowledged", "good", "acknowledged", "the provider answered yes"),
        "rejected": Word("Rejected", "bad", "rejected", "the provider answered no"),
        "not_sent": Word("Not sent", "quiet", "not_sent", "nothing left this system"),
        "unknown": UNKNOWN,
    },
    "operation": {
        "intended": Word("Intended", "quiet", "intended", "written down, nothing sent yet"),
        "sending": Word("Sending", "move", "sending", "on its way"),
        "unknown": UNKNOWN,
        "held": Word("Held", "hold", "held", "only a person can settle it"),
        "applied": Word("Applied", "good", "applied", "it took effect"),
        "verified": Word(
            "Verified", "good", "verified", "it took effect and the result was checked"
        ),
        "postcondition_failed": Word(
            "Result check failed",
            "bad",
            "postcondition_failed",
            "accepted, but the result is not as expected",
        ),
        "rejected": Word("Rejected", "bad", "rejected", "the provider said no; nothing changed"),
        "abandoned": Word(
            "Abandoned",
            "quiet",
            "abandoned",
            "a person gave up on it; the outcome stays as it was",
        ),
    },
    # Code names evidence by where it came from, people by what it says.
    "evidence": {
        "receipt": MATCH,
        "lookup": MATCH,
        "rejection": Word("Rejected", "bad", "rejected", "the provider said no; nothing changed"),
        "absence": NO_MATCH,
        "unavailable": Word("Unavailable", "wait", "unavailable", "could not look"),
        "conflict": Word("Conflict", "hold", "conflict", "records that cannot all be true"),
        "operator": Word("Person's word", "quiet", "user", "what a colleague states"),
        "asking": Word("Asking", "move", "sending", "it was asked, and has not answered yet"),
        "stale": Word("Stale", "quiet", "stale", "too old to decide on", cut=True),
    },
    "decision": {
        "proposed": Word("Proposed", "move", "proposed", "one person has decided"),
        "second": Word("Needs a second person", "hold", "second", "somebody else must confirm"),
        "recorded": Word("Recorded", "good", "recorded", "in force"),
        "withdrawn": Word("Withdrawn", "quiet", "cancelled", "taken back before it was confirmed"),
        "refused": Word("Refused", "hold", "rejected", "the second person said no; nothing moved"),
        "void": Word("Void", "quiet", "superseded", "what it rested on has changed", cut=True),
        "overtaken": OVERTAKEN,
    },
    # What somebody wants to do, and people are asked about.
    "proposal": {
        "open": Word("Asks", "wait", "waiting", "waits for somebody to approve or deny it"),
        "approved": Word("Approved", "good", "recorded", "may be carried out, once, as it is"),
        "denied": Word("Denied", "quiet", "rejected", "somebody said no; nothing was sent"),
        "sent_back": Word("Sent back", "hold", "help", "somebody asked a question first"),
        "expired": Word("Ran out", "hold", "expired", "nobody settled it in time"),
        "cancelled": CANCELLED,
    },
    "answer": {
        "approve": Word("Approved", "good", "recorded", "said yes"),
        "deny": Word("Denied", "quiet", "rejected", "said no"),
        "question": Word("Asked", "hold", "help", "sent it back with a question"),
        "withdraw": Word("Withdrawn", "quiet", "cancelled", "took the own approval back"),
    },
    # What the authorisation boundary has found.
    "finding": {
        "passed": Word("Holds", "good", "match", "this check allows it"),
        "failed": Word("Does not hold", "hold", "no_match", "this check does not allow it"),
        "allowed": Word("Allowed", "good", "match", "every check allows it"),
        "denied": Word("Not allowed", "hold", "lock", "a check does not allow it"),
    },
    "hold": {
        "open": HELD,
        "decided": Word("Decided", "good", "recorded", "a person decided"),
        "closed": Word("Closed", "quiet", "completed", "proof arrived by itself"),
    },
    # One case of an action on many.
    "item": {
        "pending": Word("Not yet", "quiet", "ready", "its turn comes"),
        "done": Word("Done", "good", "completed", "it was done"),
        "skipped": Word("Left as it was", "quiet", "cancelled", "a rule refused it"),
        "failed": Word("Not done", "hold", "warn", "something broke on our side; it is as it was"),
    },
    "wait": {
        "waiting": Word("Waiting", "wait", "waiting", "nothing has come yet"),
        "resolved": Word("Resolved", "good", "resolved", "the event came"),
        "expired": Word("Expired", "hold", "expired", "the time ran out"),
        "cancelled": Word("Cancelled", "quiet", "cancelled", "no longer needed"),
    },
    "event": {
        "stored": Word("Stored", "quiet", "stored", "kept; no wait for it yet"),
        "matched": Word("Matched", "good", "matched", "given to its wait"),
        "late": Word("Late", "hold", "late", "its wait had ended"),
        "rejected": Word("Rejected", "bad", "rejected", "not readable"),
        "ambiguous": Word("Ambiguous", "hold", "held", "more than one wait could take it"),
        "dismissed": Word("Dismissed", "quiet", "cancelled", "a person said that none needs it"),
        "duplicate": Word("Duplicate", "quiet", "duplicate", "seen before; only counted"),
    },
    # How a field of an event fits what a wait expects.
    "fit": {
        "same": MATCH,
        "differs": Word("Differs", "hold", "no_match", "not the same text"),
    },
    "step": {
        "done": Word("Committed", "good", "committed", "its result counts"),
        "blocked": Word("Waits", "quiet", "blocked", "needs another step first"),
        "skipped": Word("Skipped", "quiet", "cancelled", "the run went on without it"),
    },
    "dispatch": {
        "on": Word("On", "good", "play", "writes that are due are sent"),
        "paused": Word("Paused", "hold", "pause", "new writes wait until it is on"),
        "off": Word("Off", "quiet", "cancelled", "new writes wait, and it is not to be on soon"),
    },
    # What counts beside the state that a run is in.
    "stop": {
        "quiet": Word("Lease ran out", "hold", "warn", "its worker went quiet; another takes over"),
        "paused": Word("Paused", "hold", "pause", "goes on when somebody resumes it"),
        "resumed": Word("Resumed", "quiet", "play", "goes on"),
        "migrated": Word("Moved", "quiet", "arrow", "goes on under a later version"),
        "cancelling": Word(
            "Cancel asked", "hold", "cancelled", "ends when what is open is settled"
        ),
    },
    "worker": {
        "alive": Word("Alive", "good", "running", "takes work"),
        "quiet": Word("Quiet", "quiet", "lost", "was not seen for longer than a lease"),
        "no_broker": Word("No broker", "hold", "unavailable", "its messages reach nobody"),
        "no_sweep": Word("Sweeps no more", "hold", "warn", "does not look for due work"),
    },
    # An effect that is known not to be as it was meant.
    "wrong": {
        "double": Word("More than once", "bad", "duplicate", "it took effect more than once"),
        "check": Word(
            "Result check failed",
            "bad",
            "postcondition_failed",
            "accepted, but the result is not as expected",
        ),
    },
    "channel": {
        "works": Word("Works", "good", "applied", "what is told goes out by it"),
        "failing": Word("Failing", "hold", "warn", "it is tried again, ever more seldom"),
        "stopped": Word("Stopped", "hold", "not_sent", "not used until somebody has seen to it"),
        "off": Word("Off", "quiet", "cancelled", "an administrator turned it off"),
    },
    "message": {
        "waiting": Word("Waiting", "wait", "waiting", "not taken by the other side yet"),
        "sent": Word("Sent", "good", "acknowledged", "the other side took it"),
        "failed": Word("Not taken", "hold", "warn", "a test that did not arrive"),
        "dropped": Word("Not needed", "quiet", "cancelled", "nothing of it waited any more"),
    },
    "due": {
        "late": Word("Past due", "hold", "clock", "it was to be decided before now"),
    },
    # What would become of a run under the latest version of its workflow.
    "version": {
        "moves": Word("Would move", "move", "arrow", "goes on under the latest version"),
        "stays": Word("Would stay", "hold", "blocked", "keeps its version, for the reason beside"),
        "nobody": Word("Nobody", "hold", "warn", "no live worker has it, and its runs wait"),
    },
    # What the record and the event log tell of beside changes of state.
    "entry": {
        "started": Word("Started", "quiet", "ready", "the run began"),
        "handover": Word("Lease moved", "quiet", "handover", "another worker took over"),
        "refused": Word("Refused", "quiet", "rejected", "a late write that changed nothing"),
        "asked": Word("Asked", "quiet", "refresh", "the provider was asked"),
        "noted": Word("Note", "quiet", "user", "a person left a note"),
        "asks": Word("Not answered", "hold", "help", "somebody is asked and has not answered"),
        "asked_person": Word("Question", "quiet", "help", "somebody was asked, and answered"),
        "answered": Word("Answer", "quiet", "recorded", "what somebody answered"),
        "retried": Word("Tried again", "quiet", "refresh", "the step starts anew"),
    },
}


def word(kind: str, state: str) -> Word:
    """Return how `state` of a `kind` is shown; a state nobody named yet shows as itself."""
    known = VOCABULARY.get(kind, {}).get(state)
    return known or Word(state.replace("_", " ").capitalize() or "None", "quiet", "help", "")
