"""Amazon's own signer is the judge of ours."""

from __future__ import annotations

from datetime import UTC, datetime
from urllib.parse import urlsplit

import pytest
from botocore import auth, awsrequest, credentials

from reconciliation.adapters.aws.signing import Credential, sign
from reconciliation.adapters.wire import Request
from reconciliation.core.errors import InvalidProvider

AT = datetime(2026, 11, 30, 5, 6, 7, tzinfo=UTC)
JSON = {"Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": "DynamoDB.PutItem"}


class S3Signer(auth.S3SigV4Auth):
    """Amazon's signer for S3 as it signs where a connection is safe or not: the whole body."""

    def _should_sha256_sign_payload(self, _request: awsrequest.AWSRequest) -> bool:
        return True


def theirs(request: Request, service: str, region: str, by: Credential) -> str:
    """What botocore writes into the header, at the moment of the test."""
    url = f"https://host.example.com{request.target}"
    whole = awsrequest.AWSRequest(request.method, url, dict(request.headers), request.body)
    signer = S3Signer if service == "s3" else auth.SigV4Auth
    keys = credentials.Credentials(by.access_key, by.secret, by.session or None)
    signer(keys, service, region).add_auth(whole)
    return str(whole.headers["Authorization"])


@pytest.mark.parametrize("session", ["", "a-session/token=="])
@pytest.mark.parametrize(
    ("service", "request_"),
    [
        ("dynamodb", Request("POST", "/", JSON, b'{"TableName": "t"}')),
        ("ec2", Request("POST", "/", {"Content-Type": "a/b; charset=utf-8"}, b"Action=Run&V=%2F")),
        ("states", Request("GET", "/a%20b/c?z=1&a=%2Fx&a=b&empty=", {"X-Spaces": "a   b"})),
        ("s3", Request("PUT", "/bucket/a%20b/c~d.json", {"If-None-Match": "*"}, b"whole")),
        ("s3", Request("HEAD", "/bucket/%C3%BC%2B.json", {})),
    ],
)
def test_a_signature_is_the_one_that_amazon_makes(
    monkeypatch: pytest.MonkeyPatch, service: str, request_: Request, session: str
) -> None:
    monkeypatch.setattr(auth, "get_current_datetime", lambda: AT.replace(tzinfo=None))
    by = Credential("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", session)
    signed = sign(request_, "host.example.com", service, "eu-central-1", by, AT)
    assert signed.headers["Authorization"] == theirs(request_, service, "eu-central-1", by)
    assert (signed.body, signed.target) == (request_.body, request_.target)
    assert urlsplit(request_.target).path


@pytest.mark.parametrize("text", ["", "AKID", "AKID:", ":secret-part"])
def test_a_credential_that_is_none_is_refused_without_being_shown(text: str) -> None:
    with pytest.raises(InvalidProvider) as refused:
        Credential.parse(text)
    assert "secret-part" not in str(refused.value)
    assert "secret" not in repr(Credential("AKID", "secret", "session"))
