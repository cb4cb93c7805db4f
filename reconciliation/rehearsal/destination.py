"""The rehearsal destination: an HTTP server that makes real effects and real trouble.

    python -m reconciliation.rehearsal.destination --data DIR [--port P] [--host 127.0.0.1]

prints `listening on http://127.0.0.1:PORT` when it is ready (port 0 picks a free one). SIGTERM and
SIGINT end it; SIGKILL loses no effect that it answered for. Everything is kept in DIR, which one
destination uses at a time. Below, U is its address.

Five personalities, each with its own accounts (any token `acct_…`). Every answer has a Request-Id.

    curl U/keyed/v1/refunds -H 'Authorization: Bearer acct_1' -H 'Idempotency-Key: k1' \\
         -d '{"amount": 500, "currency": "eur", "order": "A1", "metadata": {"operation": "op1"}}'
    curl U/keyed/v1/refunds?operation=op1 -H 'Authorization: Bearer acct_1'   (and /refunds/<id>)
        same key, same parameters: the stored answer, `Idempotent-Replayed: true`; other parameters
        or endpoint (/keyed/v1/credits): 400 key_reused; still executing: 409 key_in_use
    curl U/lookup/v1/machines -H 'Authorization: Bearer acct_1' \\
         -d '{"name": "w1", "size": "small", "zone": "north-1a", "metadata": {"operation": "op2"}}'
        no keys: asked twice, it makes two; found by ?operation= and by id, once its lag is over
    curl U/blind/v1/tickets/17/comments -H 'Authorization: Bearer acct_1' -d '{"body": "Done"}'
        no keys, and nothing can be read
    U/stripe-v1 and U/stripe-v2, as the base address of Stripe's own client (its key: `acct_…`)
        payment intents and outbound payments, with the keys that Stripe documents: v1 keeps them
        for 24 h, errors too; v2 for 30 days, and does what failed again; 409 while executing
    other members are kept and shown as sent; `Romulus-Operation`, `Romulus-Attempt` are journalled

Faults, for one request by header or armed for the requests to come, in the order of arming:

    curl … -H 'Rehearsal-Fault: postcondition;status=pending, apply_then_drop'
    curl U/_admin/faults -d '{"fault": "apply_then_drop", "order": "A1", "times": 2}'
    curl U/_admin/faults          what is armed, and every fault with its meaning and parameters
    curl -X DELETE U/_admin/faults
        matched by personality, operation, path (* allowed), method, account, order, and
        "body": {"metadata.customer": "c1"}; parameters beside the name; "times": null until cleared

    curl U/_admin/effects?operation=op1     also personality=, account=: one row is one effect
    curl U/_admin/journal?operation=op1     also after=, limit=: every request, from its arrival
    curl U/_admin/settings -d '{"personality": "keyed", "retention_seconds": 60}'
        also visibility_lag_seconds, clock_ahead_seconds (keys grow old by it); GET shows them
    curl -X POST U/_admin/release           ends the delays that are under way
    curl -X POST U/_admin/reset             forgets everything
    curl U/_admin/health
"""

from __future__ import annotations

import argparse
import errno
import signal
import sys
import threading
from pathlib import Path

from reconciliation.rehearsal.server import Lifetime, Server
from reconciliation.rehearsal.store import Store, StoreRefused

# A request takes milliseconds once its delays are cut short.
PATIENCE_SECONDS = 5.0
POLL_SECONDS = 0.2
LAST_PORT = 65_535


def main(arguments: list[str] | None = None) -> int:
    """Serve until told to stop; returns the exit code, 1 when it could not start."""
    options = _options(arguments)
    try:
        store = Store(options.data)
    except (StoreRefused, OSError) as refused:
        return _refuse(str(refused))
    lifetime = Lifetime()
    try:
        server = Server((options.host, options.port), store, lifetime)
    except OSError as error:
        store.close()
        return _refuse(_why_not_bound(error, options.host, options.port))
    _serve(server, lifetime, options.host)
    store.close()
    return 0


def _serve(server: Server, lifetime: Lifetime, host: str) -> None:
    told_to_stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: told_to_stop.set())
    thread = threading.Thread(target=server.serve_forever, args=(POLL_SECONDS,), daemon=True)
    thread.start()
    shown = f"[{host}]" if ":" in host else host
    sys.stdout.write(f"listening on http://{shown}:{server.server_port}\n")
    sys.stdout.flush()
    told_to_stop.wait()
    server.shutdown()
    server.server_close()
    lifetime.end(PATIENCE_SECONDS)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m reconciliation.rehearsal.destination",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", type=Path, required=True, help="the folder of the store")
    parser.add_argument("--port", type=_port, default=0, help="0, the default, picks a free one")
    parser.add_argument("--host", default="127.0.0.1")
    return parser.parse_args(arguments)


def _port(text: str) -> int:
    port = int(text)
    if not 0 <= port <= LAST_PORT:
        message = f"{port} is not a port"
        raise argparse.ArgumentTypeError(message)
    return port


def _why_not_bound(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; give another with --port"
    return f"cannot listen on {host}:{port}: {error.strerror or error}"


def _refuse(message: str) -> int:
    sys.stderr.write(f"rehearsal destination: {message}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
