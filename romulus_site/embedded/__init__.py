"""The embedded PostgreSQL: one server for all processes of a data folder, over a local socket.

Promises: what was committed survives SIGKILL of any process; the server ends with its owner, of
whom there is one; nobody but the folder's owner reaches it; and no permission of any folder
outside the data folder is touched. The programs are those of an installed wheel, or the machine's
own. `docs/adr/` says what was measured.

Settings import this package: it imports neither Django nor a driver, and starts nothing by itself.
"""

from __future__ import annotations

from romulus_site.embedded.errors import AlreadyRunning, EmbeddedError
from romulus_site.embedded.queue import ensure_pgmq
from romulus_site.embedded.server import EmbeddedPostgres
from romulus_site.embedded.settings import broker_options, database_settings

__all__ = [
    "AlreadyRunning",
    "EmbeddedError",
    "EmbeddedPostgres",
    "broker_options",
    "database_settings",
    "ensure_pgmq",
]
