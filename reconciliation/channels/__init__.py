"""Ways to tell people: each hands one letter over once, and says what came of it.

Nothing is tried again here, and nothing is raised for what the network does.
"""
