"""The contracts that ship, as rows: one for each version, never changed."""

from __future__ import annotations

from pathlib import Path

import yaml

from reconciliation.core.contracts import Contract, parse_contract
from reconciliation.core.errors import InvalidContract
from reconciliation.models import ContractVersion

SHIPPED = Path(__file__).resolve().parent.parent / "contracts"


def shipped() -> list[Contract]:
    """Read the contract files.

    Raises:
        InvalidContract: names the file and the field.
    """
    return [
        parse_contract(yaml.safe_load(path.read_text()), where=path.name)
        for path in sorted(SHIPPED.glob("*.yaml"))
    ]


def load_shipped() -> None:
    """Add a row for every shipped version that has none.

    Raises:
        InvalidContract: a file was changed without a new version; operations keep the version
            that they were sent under, so its text must not change.
    """
    for contract in shipped():
        document = contract.model_dump(mode="json")
        row, created = ContractVersion.objects.get_or_create(
            slug=contract.slug, version=contract.version, defaults={"document": document}
        )
        if not created and row.contract != contract:
            raise InvalidContract(
                f"contract {contract.slug}: version {contract.version} is in use with another "
                "text; give the changed file a new version"
            )
