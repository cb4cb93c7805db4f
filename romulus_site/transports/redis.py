"""Redis, after it was away.

A message that cannot be acknowledged, because the connection is lost, counts for kombu as one that
the worker still has. When all that it may have are of that kind it asks for no other, so it never
finds that the connection is lost, and is silent for ever. Here the message is forgotten; its sender
and the broker may deliver it again, which changes nothing (promise P10).
"""

from __future__ import annotations

from kombu.transport import redis


class QoS(redis.QoS):
    def ack(self, delivery_tag: str) -> None:
        try:
            super().ack(delivery_tag)
        except BaseException:
            self._quick_ack(delivery_tag)  # type: ignore[attr-defined]
            raise


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel
