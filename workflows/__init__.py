"""The execution record: definitions, runs, attempts, outputs and who owns the next move.

Never imports `reconciliation`: a `write` step reaches it through the step-kind registry.
"""
