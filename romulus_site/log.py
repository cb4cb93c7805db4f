"""Structured logs: one event a line, JSON, with run, operation and attempt IDs; never payloads."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from typing import Any

import structlog

from workflows.core.at_work import add_at_work

# The database names the values of a row that it refuses; up to the next error of a traceback.
DETAIL = re.compile(
    r"\n(?:DETAIL|CONTEXT|STATEMENT): .*?(?=\n\n(?:The above|During)|\Z)", re.DOTALL
)


def without_values(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> Any:
    """Leave out of a traceback what rows hold: a log line holds no payload (promise P9)."""
    if isinstance(event.get("exception"), str):
        event["exception"] = DETAIL.sub("\nDETAIL: left out", event["exception"])
    return event


SHARED: list[Any] = [
    structlog.contextvars.merge_contextvars,
    add_at_work,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
    without_values,
]


def logging_config(level: str) -> dict[str, Any]:
    """Return Django's `LOGGING` for `level`, and set structlog up to write through it."""
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "processor": structlog.processors.JSONRenderer(),
                "foreign_pre_chain": SHARED,
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            # The HTTP client logs whole URLs at INFO: targets do not belong in logs (promise P9).
            "httpx": {"level": "WARNING"},
            "httpcore": {"level": "WARNING"},
            # It warns that `pgmq://` names no host; the host is in the transport's options.
            "kombu.connection": {"level": "ERROR"},
        },
    }
