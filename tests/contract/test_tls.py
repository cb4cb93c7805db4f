"""A safe connection leads to the address that was checked, and is proven for the name."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from reconciliation.adapters import network, wire
from reconciliation.core.addresses import Allowed
from reconciliation.core.classify import Phase
from reconciliation.core.states import TransmissionState
from tests.contract.far_side import FarSide, far_side
from tests.contract.lanes import GENERIC
from tests.contract.sending import Sending

HERE = (Allowed.parse("*=127.0.0.1"), Allowed.parse("*=[::1]"))


def certificate(folder: Path, name: str) -> Path:
    """A certificate for `name` that signs itself, with its key, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    form, none = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    file = folder / f"{name}.pem"
    file.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, form, none)
    )
    return file


@pytest.fixture
def safe_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> Iterator[FarSide]:
    """A server whose certificate, for the name of the parameter, the machine trusts."""
    file = certificate(tmp_path, request.param)
    trusts = ssl.create_default_context(cafile=str(file))
    for module in (network, wire):
        monkeypatch.setattr(module, "certificates", lambda: trusts)
    shows = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    shows.load_cert_chain(file)
    with far_side(shows) as made:
        yield made


def to(side: FarSide, host: str) -> Sending:
    sending = Sending(GENERIC, side)
    sending.adapter = GENERIC.at(f"https://{host}:{side.port}", allowed=HERE)
    return sending


@pytest.mark.parametrize("safe_side", ["localhost"], indirect=True)
def test_a_name_is_proven_by_its_certificate_at_the_address_that_was_checked(
    safe_side: FarSide,
) -> None:
    sending = to(safe_side, "localhost")
    safe_side.answers = sending.accepted
    outcome = sending.send()
    assert sending.state(outcome) is TransmissionState.ACKNOWLEDGED
    assert safe_side.seen[0].headers["host"] == f"localhost:{safe_side.port}"


@pytest.mark.parametrize("safe_side", ["api.example.com"], indirect=True)
def test_a_certificate_of_another_name_gets_nothing(safe_side: FarSide) -> None:
    sending = to(safe_side, "localhost")
    outcome = sending.send()
    assert outcome.report.phase is Phase.TLS
    assert sending.state(outcome) is TransmissionState.NOT_SENT
    assert safe_side.seen == []


def test_a_server_that_knows_no_safe_connection_gets_nothing(side: FarSide) -> None:
    sending = to(side, "localhost")
    outcome = sending.send(seconds=2)
    assert outcome.report.phase is Phase.TLS
    assert sending.state(outcome) is TransmissionState.NOT_SENT
    assert side.seen == []
