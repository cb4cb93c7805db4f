"""Settings of the processes that are measured: the product's own, on the bench's database.

The variables are set by `romulus_site.bench.database`, for its children; none is for people.
"""

from __future__ import annotations

import os

from romulus_site import embedded
from romulus_site import settings as product

globals().update({name: value for name, value in vars(product).items() if name.isupper()})

MEMORY = "memory://"

DATABASES = {
    "default": product.DATABASES["default"] | {"NAME": os.environ["ROMULUS_BENCH_DATABASE"]}
}
if proxy := os.environ.get("ROMULUS_BENCH_PROXY"):
    # The name of the server stays, where there is one: its certificate may be checked against it.
    by_name = not str(product.DATABASES["default"].get("HOST") or "/").startswith("/")
    options = DATABASES["default"].get("OPTIONS", {})
    DATABASES["default"] |= (
        {"OPTIONS": options | {"hostaddr": "127.0.0.1"}} if by_name else {"HOST": "127.0.0.1"}
    )
    DATABASES["default"]["PORT"] = proxy

# Where only the worker's own part is measured, hints go nowhere.
CELERY_BROKER_URL = os.environ.get("ROMULUS_BENCH_BROKER", product.CELERY_BROKER_URL)
CELERY_BROKER_TRANSPORT_OPTIONS = (
    embedded.broker_options(DATABASES["default"])
    if CELERY_BROKER_URL == "pgmq://"
    else {}
    if CELERY_BROKER_URL == MEMORY
    else product.CELERY_BROKER_TRANSPORT_OPTIONS
)
# On a broker that others use too, a queue of its own.
CELERY_TASK_DEFAULT_QUEUE = os.environ.get("ROMULUS_BENCH_QUEUE", product.CELERY_TASK_DEFAULT_QUEUE)

ROOT_URLCONF = "romulus_site.bench.urls"
ROMULUS_WORKFLOWS = ["romulus_site.bench.flows"]
ROMULUS_FAILPOINTS: list[str] = []
CELERY_IMPORTS = ["romulus_site.bench.alone"]
ROMULUS_ALLOWED_ADDRESSES = ["*=127.0.0.1"]  # the rehearsal destination
