"""Delivers to the ingress over HTTP, as fast as it takes: on connections that stay open.

Requests are made and signed before the clock starts, so that next to nothing of the figure is ours.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import socket
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from romulus_site.bench.flows import EVENT_TYPE
from romulus_site.bench.ingress import HOOK, SECRET
from romulus_site.bench.talk import hear, say
from workflows.models.ids import new_id

PIECE = b"x" * 65_536
SECONDS = 60.0


def main() -> None:
    say({})
    while (order := hear()) is not None:
        if "bytes" in order:
            say(large_ones(order["port"], order["bytes"], order["connections"]))
        else:
            say(posted(order))


def posted(order: dict) -> dict:  # type: ignore[type-arg]
    """Deliver `number` events over so many connections; give the seconds and the answers."""
    shares = [
        [
            request(order["path"], f"{order['prefix']}-{place}")
            for place in range(first, order["number"] + 1, order["connections"])
        ]
        for first in range(1, order["connections"] + 1)
    ]
    together = threading.Barrier(order["connections"] + 1)
    answers: Counter[str] = Counter()

    def deliver(share: list[bytes]) -> Counter[str]:
        with socket.create_connection(("127.0.0.1", order["port"]), SECONDS) as server:
            together.wait()
            return Counter(answer_to(server, each) for each in share)

    with ThreadPoolExecutor(order["connections"]) as pool:
        futures = [pool.submit(deliver, share) for share in shares]
        together.wait()
        began = time.perf_counter()
        for future in futures:
            answers += future.result()
        return {"seconds": time.perf_counter() - began, "answers": answers}


def request(path: str, order: str) -> bytes:
    body = json.dumps({"type": EVENT_TYPE, "data": {"order": order, "amount": "125.00"}}).encode()
    return headers(path, len(body), body) + body


def headers(path: str, length: int, signed: bytes) -> bytes:
    event_id, at = new_id().hex, int(time.time())
    content = f"{event_id}.{at}.".encode() + signed
    key = base64.b64decode(SECRET.removeprefix("whsec_"))
    signature = base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {length}",
        f"webhook-id: {event_id}",
        f"webhook-timestamp: {at}",
        f"webhook-signature: v1,{signature}",
    )
    return "\r\n".join((*lines, "", "")).encode()


def answer_to(server: socket.socket, sent: bytes) -> str:
    """Send a request on a connection that stays open; return the status of its answer."""
    server.sendall(sent)
    heard = b""
    while b"\r\n\r\n" not in heard:
        heard += received(server)
    head, _, body = heard.partition(b"\r\n\r\n")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if is_length(line)), 0)
    while len(body) < length:
        body += received(server)
    return head.split(b" ", 2)[1].decode()


def received(server: socket.socket) -> bytes:
    piece = server.recv(65_536)
    if not piece:
        raise ConnectionError("the server has closed the connection")
    return piece


def is_length(line: bytes) -> bool:
    return line.lower().startswith(b"content-length:")


# --- large bodies -----------------------------------------------------------------------------


def large_ones(port: int, size: int, connections: int) -> dict:  # type: ignore[type-arg]
    """Deliver bodies of so many bytes at the same time; give the answers."""
    with ThreadPoolExecutor(connections) as pool:
        answers = pool.map(lambda _: large_one(port, size), range(connections))
        return {"answers": Counter(answers)}


def large_one(port: int, size: int) -> str:
    with socket.create_connection(("127.0.0.1", port), SECONDS) as server:
        # Whoever refuses it early may close: what has been sent by then is enough.
        with suppress(BrokenPipeError, ConnectionResetError):
            server.sendall(headers(HOOK, size, PIECE))
            for _ in range(size // len(PIECE)):
                server.sendall(PIECE)
        try:
            head = server.recv(65_536)
        except ConnectionResetError:
            return "closed"
        return head.split(b" ", 2)[1].decode() if head else "closed"
