"""One function for each thing that can happen to an operation; one transaction each.

Lock order, written once and obeyed: run, then operation, then hold; then the audit record, after
which nothing is locked. What is locked is not gone: others may refer to it meanwhile (`no_key`).
"""
