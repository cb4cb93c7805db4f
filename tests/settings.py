"""Settings of a test run: the product's, on an embedded PostgreSQL in a folder of its own."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

# Each of several processes that share the tests has a folder, and with it a server, of its own.
if not os.environ.get("ROMULUS_DATA") or "PYTEST_XDIST_WORKER" in os.environ:
    os.environ["ROMULUS_DATA"] = tempfile.mkdtemp(prefix="romulus-test-")
    atexit.register(shutil.rmtree, os.environ["ROMULUS_DATA"], ignore_errors=True)
# Tests say what they need; what the caller's shell has set for the product does not count.
os.environ.pop("BROKER_URL", None)
# Destinations of tests listen on the loopback; the processes that tests start inherit this.
os.environ["ROMULUS_ALLOWED_ADDRESSES"] = "*=127.0.0.0/8"
os.environ["ROMULUS_KEYS"] = "a-key-of-the-tests-that-protects-nothing"

from romulus_site.settings import *

# Hints of one process's tests go nowhere; worker processes of acceptance tests get a real broker.
CELERY_BROKER_URL = "memory://"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, object] = {}
# A slow hash protects passwords, and tests have none.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
# Each client of a test makes a handler of its own, which would list the files of all pages anew.
WHITENOISE_AUTOREFRESH = True
