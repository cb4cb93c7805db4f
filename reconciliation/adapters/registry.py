"""The adapters there are, by the slug that a provider names.

Those of third parties are found by the entry point group `romulus.adapters`: a package that is
installed beside Romulus names a subclass of `Adapter` there, and `docs/adapters.md` says how.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points

import structlog

from reconciliation.adapters.aws.ec2 import Ec2Adapter
from reconciliation.adapters.aws.json_services import DynamoDbAdapter, StepFunctionsAdapter
from reconciliation.adapters.aws.s3 import S3Adapter
from reconciliation.adapters.base import Adapter, Connection
from reconciliation.adapters.email import EmailAdapter
from reconciliation.adapters.http import HttpAdapter
from reconciliation.adapters.rehearsal import RehearsalAdapter
from reconciliation.adapters.stripe import StripeV1, StripeV2
from reconciliation.core.contracts import Contract
from reconciliation.core.errors import InvalidProvider

log = structlog.get_logger(__name__)

GROUP = "romulus.adapters"
ADAPTERS: dict[str, type[Adapter]] = {
    "aws-dynamodb": DynamoDbAdapter,
    "aws-ec2": Ec2Adapter,
    "aws-s3": S3Adapter,
    "aws-step-functions": StepFunctionsAdapter,
    "email": EmailAdapter,
    "http": HttpAdapter,
    "rehearsal": RehearsalAdapter,
    "stripe-v1": StripeV1,
    "stripe-v2": StripeV2,
}


@cache
def of_others() -> dict[str, EntryPoint]:
    """The adapters of installed packages; none of them takes the place of one of ours."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    return {slug: point for slug, point in points.items() if slug not in ADAPTERS}


def known_adapters() -> list[str]:
    return sorted({*ADAPTERS, *of_others()})


def adapter_class(slug: str) -> type[Adapter]:
    """Raises `InvalidProvider`: there is none, naming those there are; or it cannot be loaded."""
    if slug in ADAPTERS:
        return ADAPTERS[slug]
    point = of_others().get(slug)
    if point is None:
        raise InvalidProvider(f"no adapter {slug!r}; known: {', '.join(known_adapters())}")
    return loaded(point)


@cache
def loaded(point: EntryPoint) -> type[Adapter]:
    """Load the adapter of a package. What is wrong with it is that provider's trouble alone."""
    try:
        made = point.load()
    except Exception as error:
        log.exception("adapter.not_loaded", adapter=point.name)
        raise InvalidProvider(
            f"the adapter {point.name!r} of {point.value} cannot be loaded ({type(error).__name__})"
        ) from error
    if not (isinstance(made, type) and issubclass(made, Adapter)):
        raise InvalidProvider(f"{point.value} is no Adapter; the entry point {point.name!r} is")
    return made


def adapter_for(slug: str, connection: Connection, contract: Contract) -> Adapter:
    """Raises `InvalidProvider`, naming the adapters there are."""
    return adapter_class(slug)(connection, contract)
