"""What each scheme says by itself: where ID, type and correlation stand, and its settings.

Pydantic reads the settings, for the admin's form and for whoever saves a source from code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from workflows.core.sources import Scheme

HeaderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9-]{1,100}$", to_lower=True)]
Arn = Annotated[str, StringConstraints(pattern=r"^arn:aws[\w-]*:sns:[\w-]+:\d{12}:[\w.-]+$")]


class Settings(BaseModel):
    """What a source of any scheme may be told beside its secrets.

    Attributes:
        id_header, type_header: headers that hold the event's ID and type. Most schemes do not
            sign them: whoever can send a request again can change them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id_header: HeaderName | Literal[""] = ""
    type_header: HeaderName | Literal[""] = ""


class HmacSettings(Settings):
    """How a plain HMAC is written down.

    Attributes:
        header: holds the signature, after `prefix`.
        timestamp_header: holds the time of signing, in seconds or (13 digits) milliseconds. What
            is signed is then the time, `separator` and the body; without it the body alone, and
            a request that was once signed counts for ever.
    """

    header: HeaderName
    algorithm: Literal["sha256", "sha512", "sha1"] = "sha256"
    encoding: Literal["hex", "base64"] = "hex"
    prefix: Annotated[str, StringConstraints(max_length=50)] = ""
    timestamp_header: HeaderName | Literal[""] = ""
    separator: Annotated[str, StringConstraints(max_length=5)] = "."


class SnsSettings(Settings):
    """Whose messages are taken.

    Attributes:
        topics: their ARNs. A signature only says that AWS has sent a message; anybody may have a
            topic there.
        certificates: as PEM text, those that sign. Empty: fetched from where the message says,
            if that is AWS, and kept.
    """

    topics: Annotated[list[Arn], Field(min_length=1)]
    certificates: list[str] = []


SETTINGS: dict[Scheme, type[Settings]] = {
    Scheme.HMAC: HmacSettings,
    Scheme.AWS_SNS: SnsSettings,
}


def settings_of(scheme: Scheme, given: Mapping[str, Any]) -> Settings:
    """Raises `pydantic.ValidationError` for what the scheme cannot be told."""
    return SETTINGS.get(scheme, Settings).model_validate(given)


@dataclass(frozen=True, slots=True)
class Habits:
    """Where a scheme's events have what is looked for, unless the source says otherwise.

    An empty path says that the scheme leaves it to its users.
    """

    id_header: str = ""
    id_path: str = ""
    type_header: str = ""
    type_path: str = ""
    correlation_path: str = ""
    content_types: tuple[str, ...] = ("application/json",)


# Whoever writes the sender as well need not say anything.
OWN = Habits(id_path="id", type_path="type", correlation_path="correlation")

HABITS: dict[Scheme, Habits] = {
    Scheme.STANDARD_WEBHOOKS: Habits(id_header="webhook-id", type_path="type"),
    Scheme.STRIPE: Habits(id_path="id", type_path="type"),
    Scheme.GITHUB: Habits(id_header="x-github-delivery", type_header="x-github-event"),
    Scheme.SLACK: Habits(id_path="event_id", type_path="event.type"),
    Scheme.AWS_SNS: Habits(id_path="MessageId", content_types=("text/plain",)),
    Scheme.HMAC: Habits(),
    Scheme.BEARER: OWN,
    Scheme.INTERNAL: OWN,
}


@dataclass(frozen=True, slots=True)
class Rules:
    """How the events of one source are read: its own paths, else its scheme's."""

    id_header: str = ""
    id_path: str = ""
    type_header: str = ""
    type_path: str = ""
    correlation_path: str = ""
    schemas: Mapping[str, str] = field(default_factory=dict)  # by type, as JSON text

    def __post_init__(self) -> None:
        # A header that is named goes before a path.
        assert not (self.id_header and self.id_path), "one place for the ID"
        assert not (self.type_header and self.type_path), "one place for the type"


def rules_of(
    scheme: Scheme,
    settings: Settings,
    *,
    id_path: str,
    type_path: str,
    correlation_path: str,
    schemas: Mapping[str, Any],
) -> Rules:
    """A path of the source's own goes first, then a header that its settings name."""
    habits = HABITS[scheme]
    id_header = "" if id_path else settings.id_header or habits.id_header
    type_header = "" if type_path else settings.type_header or habits.type_header
    return Rules(
        id_header=id_header,
        id_path="" if id_header else id_path or habits.id_path,
        type_header=type_header,
        type_path="" if type_header else type_path or habits.type_path,
        correlation_path=correlation_path or habits.correlation_path,
        schemas={its_type: json.dumps(schema) for its_type, schema in schemas.items()},
    )


def challenge_of(scheme: Scheme, payload: Any) -> str | None:
    """What a scheme wants back before it sends events; only Slack asks."""
    if scheme is not Scheme.SLACK or not isinstance(payload, dict):
        return None
    challenge = payload.get("challenge")
    asks = payload.get("type") == "url_verification" and isinstance(challenge, str)
    return challenge if asks else None
