"""The rehearsal destination: a system to write to that loses answers, keys and look-ups on demand.

`destination` is the server and its manual, `client` is how the rest of Romulus and the tests talk
to it. The server is standard library only and imports nothing else of Romulus, because it has to
stand for a system that somebody else runs. Inside, the arrows point down:

    destination → server, bodies → execution, admin
        → effects, keys → journal → arming → store
        → misbehaviour → personalities, plans → faults → wire
"""
