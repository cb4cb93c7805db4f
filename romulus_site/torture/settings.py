"""Settings of every process of a torture: the product's own, with queues of its own.

The variables are set by `romulus_site.torture.stage`; none is for people.
"""

from __future__ import annotations

import os

from kombu import Queue

from romulus_site import settings as product

globals().update({name: value for name, value in vars(product).items() if name.isupper()})

# On a broker that others use too, names that nobody else has.
PREFIX = os.environ.get("ROMULUS_TORTURE_PREFIX", "")
QUEUES = (f"{PREFIX}advance", f"{PREFIX}reconcile")
CELERY_TASK_DEFAULT_QUEUE = QUEUES[0]
CELERY_TASK_ROUTES = {"reconciliation.tasks.reconcile": {"queue": QUEUES[1]}}
if hasattr(product, "CELERY_TASK_QUEUES"):
    CELERY_TASK_QUEUES = [Queue(name, routing_key=name, no_declare=True) for name in QUEUES]
if product.CELERY_BROKER_URL.partition(":")[0] in {"redis", "rediss"}:
    # Also of what Redis keeps beside the queues: whatever is left over can be found and removed.
    CELERY_BROKER_TRANSPORT_OPTIONS = product.CELERY_BROKER_TRANSPORT_OPTIONS | {
        "global_keyprefix": PREFIX
    }

ROMULUS_ALLOWED_ADDRESSES = ["*=127.0.0.1"]  # the rehearsal destination
ROMULUS_WORKFLOWS = ["romulus_site.torture.flows"]
# A slow hash protects passwords, and here are none.
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
