"""What `manage.py torture` does: many runs, blows against everything that runs them, then checks.

    stage    makes a set-up of its own and throws it away; the player runs on it
    plan     what is started and which blows fall, from a seed alone
    flows    the tortured workflows, and what each of their steps must give
    scene    database, broker, destination and people of the set-up
    player   the performance: starts, blows, errands; then peace until everything rests
    record   everything that is on record after it, in memory
    checks   the promises, row by row, as a list of named checks that give breaches

Nothing here touches a process that it has not started, a database that it has not made or a queue
that it has not named.
"""
