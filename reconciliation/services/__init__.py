"""One function for each thing that can happen to an operation; one transaction each.

Lock order, written once and obeyed: run, then operation, then hold.
"""
