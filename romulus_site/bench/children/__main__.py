"""Sets Django up and becomes the process that is named: `engine`, `bare_loop`, …"""

from __future__ import annotations

import sys
from importlib import import_module

import django

if __name__ == "__main__":
    django.setup()
    import_module(f"romulus_site.bench.children.{sys.argv[1]}").main()
