"""The console as a WSGI application."""

from __future__ import annotations

import gc
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.template.loader import get_template
from django.urls import get_resolver

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "romulus_site.settings")

application = get_wsgi_application()

# What all pages are made of is there before anybody asks: else whoever comes first to one waits for
# it. And it stays, so it is not gone through again for what is no longer used: that takes 120 ms,
# and held up a request now and then for longer than most pages take.
get_resolver().reverse_dict  # noqa: B018 (loads it)
folder = settings.BASE_DIR / "templates"
for file in folder.rglob("*.html"):
    get_template(str(file.relative_to(folder)))
gc.collect()
gc.freeze()
