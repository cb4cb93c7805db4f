"""Commands as from a terminal, in the test's own process."""

from __future__ import annotations

from django.core.management import ManagementUtility


def type_in(*arguments: str) -> None:
    """Run `manage.py` with `arguments`, as `ManagementUtility.execute` does, but set up nothing.

    Whoever sets Django up again within a test leaves a log handler that keeps that test's standard
    error, and everything logged in later tests goes wrong because it is closed.
    """
    command = ManagementUtility(["manage.py", *arguments]).fetch_command(arguments[0])
    command.run_from_argv(["manage.py", *arguments])
