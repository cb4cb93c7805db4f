"""`manage.py runbook`: what to do when a write to a provider is left unknown, as it is set up."""

from __future__ import annotations

import argparse
from typing import Any

from reconciliation.core.errors import InvalidProvider
from reconciliation.core.runbook import as_markdown
from reconciliation.models import Provider
from reconciliation.services.providers import readiness_of
from workflows.management.base import ConsoleCommand


class Command(ConsoleCommand):
    help = (
        "Print the runbook of a provider as Markdown: record, evidence, owner, and what it lacks."
    )

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super().add_arguments(parser)
        which = parser.add_mutually_exclusive_group(required=True)
        which.add_argument("provider", nargs="?", help="slug")
        which.add_argument(
            "--all", action="store_true", help="of every provider, one after another"
        )

    def perform(self, given: argparse.Namespace) -> None:
        found = Provider.objects.select_related("contract_version", "default_queue").order_by(
            "slug"
        )
        if not given.all:
            found = found.filter(slug=given.provider)
            if not found.exists():
                raise InvalidProvider(f"there is no provider {given.provider!r}")
        documents = [as_document(provider) for provider in found]
        lines = [line for document in documents for line in in_markdown(document)]
        self.answer(given, documents if given.all else documents[0], lines)


def as_document(provider: Provider) -> dict[str, Any]:
    queues = [queue for queue in (provider.default_queue, *provider.queues.all()) if queue]
    contract = provider.contract_version.contract if provider.contract_version else None
    return {
        "provider": provider.slug,
        "name": provider.name,
        "dispatch": str(provider.dispatch),
        "lacks": [text for part in readiness_of(provider) for text in part.lacks],
        "owners": {
            queue.slug: [owner.get_username() for owner in queue.owners.all()] for queue in queues
        },
        "contract": as_markdown(contract) if contract else "",
    }


def in_markdown(document: dict[str, Any]) -> list[str]:
    lacks = [f"- {text}" for text in document["lacks"]]
    owners = [
        f"- {queue}: {', '.join(names) or 'nobody'}" for queue, names in document["owners"].items()
    ]
    return [
        f"# {document['name']} ({document['provider']}), dispatch {document['dispatch']}",
        "",
        *(["Nothing is sent. It lacks:", "", *lacks] if lacks else ["It lacks nothing."]),
        "",
        "Owners, by the queue that takes its holds:",
        "",
        *(owners or ["- none"]),
        "",
        *document["contract"].splitlines(),
    ]
