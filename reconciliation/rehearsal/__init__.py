"""The rehearsal destination: a system to write to that loses answers, keys and look-ups on demand.

`destination` is the server and its manual, `client` is how the rest of Romulus and the tests talk
to it. The server is standard library only and imports nothing else of Romulus, because it has to
stand for a system that somebody else runs. Inside, the arrows point down:

    destination → server, bodies → execution, admin
        → effects, keys → journal → arming → store
        → misbehaviour → stripe → personalities, plans → faults → wire

`proxy` (with `breaks`) stands before any provider and breaks what passes; standard library, too.

A rehearsal plays `cases` against a sandbox behind it, and does know the rest of Romulus:

    play → crew (the processes of `worker`, which run `flow`), far_side (what is really there)

`fixture` is the smallest rehearsal of all, alone.
"""
