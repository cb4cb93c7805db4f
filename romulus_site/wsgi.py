"""The console as a WSGI application."""

from __future__ import annotations

import gc
import os

from django.core.wsgi import get_wsgi_application
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

application = get_wsgi_application()

# The code of all pages, which stays, is not gone through again for what is no longer used: that
# takes 120 ms, and held up a request now and then for longer than most pages take.
get_resolver().reverse_dict  # noqa: B018 (loads it)
gc.collect()
gc.freeze()
