#!/usr/bin/env python
"""Django's command line for Romulus."""

from __future__ import annotations

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")
    from django.core.management import execute_from_command_line

    from workflows.core.errors import InvalidDefinition

    try:
        execute_from_command_line(sys.argv)
    except InvalidDefinition as error:
        # A workflow of the author's: the sentence names file and line, or the module.
        sys.exit(f"No command runs before this is mended: {error}")


if __name__ == "__main__":
    main()
