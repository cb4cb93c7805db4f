"""The forms of the admin: what is typed, read and checked before a service saves it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.core.files.uploadedfile import UploadedFile

from workflows.core.source_rules import MAX_BYTES, MAX_SECRET
from workflows.models import EventSource, Tenant
from workflows.services.sources import GIVEN_BY_SENDER, MAX_LABEL, source_problems
from workflows.services.trial import read_headers

if TYPE_CHECKING:
    SourceFormBase = forms.ModelForm[EventSource]
    TenantFormBase = forms.ModelForm[Tenant]
else:
    SourceFormBase = TenantFormBase = forms.ModelForm

MAX_HEADERS_CHARACTERS = 64 * 1024
PATH = "By JMESPath in the payload. Empty: as the scheme says."


class TenantForm(TenantFormBase):
    class Meta:
        model = Tenant
        fields = ("name", "slug")
        help_texts = {
            "name": "As people call it: a company, a shop, a department.",
            "slug": "Its short name, as whoever starts runs for it gives it (--tenant): "
            "letters, digits, underscores and hyphens.",
        }


class SourceForm(SourceFormBase):
    class Meta:
        model = EventSource
        fields = (
            "name",
            "slug",
            "tenant",
            "enabled",
            "scheme",
            "settings",
            "tolerance",
            "id_path",
            "type_path",
            "correlation_path",
            "schemas",
            "max_bytes",
            "per_minute",
            "content_types",
            "encodings",
            "retain",
        )
        labels = {"id_path": "ID path"}
        help_texts = {
            "slug": "The last part of its address, after /hooks/. There is no secret in it.",
            "tenant": "Its events go to this tenant's waits and are shown to its people. It stays "
            "with it.",
            "enabled": "Off: deliveries are answered 404, counted and not kept. A sender that does "
            "not try again loses them.",
            "scheme": "How the sender proves who it is. A secret in the address is not offered: "
            "addresses end up in the logs of every machine on the way.",
            "settings": 'As JSON. HMAC in a header: {"header": "X-Signature", "algorithm": '
            '"sha256", "encoding": "hex", "prefix": "", "timestamp_header": ""}. AWS SNS: '
            '{"topics": ["arn:aws:sns:…"], "certificates": []}. Any: "id_header" and '
            '"type_header", for what stands in headers.',
            "tolerance": "Hours:minutes:seconds that the time in a signature may lie before or "
            "after the database's. AWS SNS signs once and tries again for an hour.",
            "id_path": f"{PATH} The same ID again is the same event.",
            "type_path": f"{PATH} Waits name the types that they take.",
            "correlation_path": "Where it stands which run an event is for, such as data.order. "
            "Alternatives: data.order || data.reference.",
            "schemas": 'By type: {"order.paid": {"type": "object", "required": ["data"]}}. What '
            "does not fit is kept as rejected and given to no wait.",
            "max_bytes": f"Packed and unpacked alike; {MAX_BYTES:,} at most.",
            "per_minute": "Genuine deliveries a minute, for each process of the console. Empty: as "
            "many as come.",
            "content_types": 'Such as ["application/json"]. AWS SNS sends text/plain.',
            "encodings": "Of gzip and deflate, those that are taken.",
            "retain": "Hours:minutes:seconds, or days first, that bodies are kept. Empty: as long "
            "as the site keeps them.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        for name, value in cleaned.items():
            setattr(self.instance, name, value)
        for field, problems in source_problems(self.instance).items():
            for problem in problems:
                self.add_error(field, problem)
        return cleaned


class SecretForm(forms.Form):
    """A secret beside those that the source has."""

    label = forms.CharField(
        max_length=MAX_LABEL,
        help_text='Tells it from the others, such as "since March". No part of the secret.',
    )
    value = forms.CharField(
        required=False,
        max_length=MAX_SECRET,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="As the sender gave it. Kept sealed and never shown.",
    )
    valid_from = forms.DateTimeField(required=False, help_text="UTC. Empty: from now on.")
    old_ones_end = forms.DateTimeField(
        required=False,
        help_text="UTC. When the secrets that count now end; until then both count. Empty: they "
        "stay.",
    )

    def __init__(self, source: EventSource, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if source.scheme in GIVEN_BY_SENDER:
            self.fields["value"].required = True
        else:
            self.fields["value"].help_text += " Empty: one is made, and shown to you once."


class EndForm(forms.Form):
    """When a secret ends."""

    at = forms.DateTimeField(
        label="Ends at",
        required=False,
        help_text="UTC. Empty: now, and nothing signed with it counts any more.",
    )


class TrialForm(forms.Form):
    """A request that was copied from somewhere."""

    headers = forms.CharField(
        required=False,
        max_length=MAX_HEADERS_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 8, "cols": 100, "spellcheck": "false"}),
        help_text="One on each line, as Name: value.",
    )
    body = forms.CharField(
        required=False,
        strip=False,
        max_length=MAX_BYTES,
        widget=forms.Textarea(attrs={"rows": 14, "cols": 100, "spellcheck": "false"}),
        help_text="Byte for byte as it was sent; browsers paste line breaks as line feeds. A body "
        "that is packed, or has other line breaks: give it as a file.",
    )
    body_file = forms.FileField(label="or as a file", required=False)

    def clean_headers(self) -> dict[str, str]:
        try:
            return read_headers(self.cleaned_data["headers"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_body(self) -> bytes:
        # A browser sends a carriage return with each line feed of a text field.
        return str(self.cleaned_data["body"]).replace("\r\n", "\n").encode(errors="replace")

    def clean_body_file(self) -> UploadedFile[bytes] | None:
        file: UploadedFile[bytes] | None = self.cleaned_data["body_file"]
        if file is not None and (file.size or 0) > MAX_BYTES:
            raise forms.ValidationError(f"{MAX_BYTES:,} bytes at most.")
        return file

    def request_body(self) -> bytes:
        file: UploadedFile[bytes] | None = self.cleaned_data["body_file"]
        body: bytes = file.read() if file is not None else self.cleaned_data["body"]
        return body
