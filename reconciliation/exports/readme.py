"""What stands in an evidence pack's README: what each file is, and how all of it is checked."""

from __future__ import annotations

from datetime import UTC, datetime

from reconciliation.exports.document import Reader
from reconciliation.models import Operation

README = """\
EVIDENCE PACK OF ONE OPERATION

Operation   {operation}
            {summary}
Exported    {at:%Y-%m-%d %H:%M:%S} UTC by {who}
            {payloads}

index.html      to read, in any browser, offline; it runs nothing
case.json       what counts: what was intended, sent, said and decided, and the
                contract in the version that the operation was sent under.
                Values that the provider's allow-list hides were hidden when
                they were stored: they are kept nowhere in the clear
audit/          the entries of the audit record about this operation and its
                run, each as the bytes that its digest was made of; chain.json
                has the way from the last entry to each of them. Entries about
                other things stand there by digest alone
SHA256SUMS      of all files:  sha256sum -c SHA256SUMS
verify.py       checks all of this and the chain:  python3 verify.py
                (read it first, if you like: it needs Python and nothing else)

The export is itself the last entry, and names the digests of case.json,
index.html, pack.css and this file. verify.py says which entry that is, and its
hash.

To be sure that this is the record that Romulus keeps, and not one made to fit,
have somebody read you that entry's hash from the page of the audit record, and
run:  python3 verify.py --head NUMBER:HASH
"""
WITH = "with what was sent and said"
WITHOUT = "without what was sent and said, which that person may not see"


def readme_of(operation: Operation, reader: Reader, now: datetime) -> str:
    return README.format(
        operation=operation.pk,
        summary=" ".join(operation.summary.split()),
        at=now.astimezone(UTC),
        who=reader.user.get_username(),
        payloads=WITH if reader.payloads else WITHOUT,
    )
