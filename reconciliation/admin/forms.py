"""The forms of the admin: what is typed, read and checked before a service saves it."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import yaml
from django import forms
from django.contrib.auth.models import User

from reconciliation.adapters.registry import known_adapters
from reconciliation.core.contracts import parse_contract
from reconciliation.core.dashboard import pattern_problem
from reconciliation.core.errors import InvalidContract, NotYoursToGive
from reconciliation.models import ContractVersion, Provider, ReviewQueue
from reconciliation.sealing import seal
from reconciliation.services.providers import adapter_problems, address_problem_of
from reconciliation.services.setup import ensure_may_give, ensure_may_loosen
from workflows.admin.json_field import NESTED

if TYPE_CHECKING:
    ProviderFormBase = forms.ModelForm[Provider]
    QueueFormBase = forms.ModelForm[ReviewQueue]
    ContractFormBase = forms.ModelForm[ContractVersion]
else:
    ProviderFormBase = forms.ModelForm
    QueueFormBase = forms.ModelForm
    ContractFormBase = forms.ModelForm

# A contract is a page of text; more would be something else, and YAML can be made to grow.
MAX_CONTRACT_CHARACTERS = 64 * 1024

TRUST = (
    "Probe before trust: the contract's claim is used only when this says why. Name the rehearsal "
    "that has shown it, with its date, or who has accepted it in writing. Empty: it is not used."
)


ADAPTER = (
    "How it is spoken to. http: any system with HTTP and JSON or forms, as the settings say. The "
    "others know the system that they are named after."
)
SETTINGS = (
    "What the adapter is told of its actions, as JSON; it checks them when it is saved with a "
    'contract. http: {"auth": {"scheme": "bearer"}, "actions": {"refunds.create": {"method": '
    '"POST", "path": "/refunds", "resource": "id"}}}. stripe-v1: {"actions": {"refunds.create": '
    '{"path": "/v1/refunds"}}}. email: {"actions": {"notices.send": {"sender": '
    '"desk@example.com"}}}. The names of actions are those that workflows use.'
)


def adapters() -> list[tuple[str, str]]:
    # None is chosen for anybody: saved unseen, it would speak another system's language.
    return [("", "---------"), *((slug, slug) for slug in known_adapters())]


class ProviderForm(ProviderFormBase):
    adapter = forms.ChoiceField(choices=adapters, help_text=ADAPTER)
    base_url = forms.CharField(
        label="Address",
        max_length=300,
        help_text="Such as https://api.example.com. Part of the scope in which a key counts: "
        "operations in progress keep it. A private address has to be named in "
        "ROMULUS_ALLOWED_ADDRESSES.",
    )
    credential = forms.CharField(
        required=False,
        strip=True,
        widget=forms.PasswordInput(render_value=False, attrs={"autocomplete": "new-password"}),
        help_text="Kept sealed and never shown. Leave it empty to keep the one there is.",
    )

    class Meta:
        model = Provider
        fields = (
            "slug",
            "name",
            "adapter",
            "account",
            "region",
            "base_url",
            "dashboard_url",
            "settings",
            "contract_version",
            "visible_parameters",
            "replay_trust",
            "look_up_trust",
            "look_ups_per_second",
            "default_queue",
        )
        help_texts = {
            "slug": "The name that workflows write to, as in @refund.write(provider=…), and the "
            "end of its page's address.",
            "region": "Where the provider has regions, such as eu-central-1: part of the scope in "
            "which a key counts, too.",
            "contract_version": "What it documents about repeats, look-ups and rejections. Without "
            "one nothing is sent; generic-keyed, generic-lookup and generic-blind are for what no "
            "other fits.",
            "account": "Its own name of the account that is written to, such as acct_1042; "
            "where it has no accounts, a name of yours. Part of the scope in which a key counts: "
            "operations in progress keep it.",
            "dashboard_url": "Its own page of a record, linked to from the cases, such as "
            "https://dashboard.example.com/refunds/{resource}.",
            "settings": SETTINGS,
            "visible_parameters": 'The only parameters that people see, such as ["order"]; every '
            "other is stored as a digest alone.",
            "replay_trust": TRUST,
            "look_up_trust": TRUST,
            "look_ups_per_second": "At most so often it is asked what became of writes, by all "
            "workers together; less where its contract documents less.",
            "default_queue": "Takes its holds where no other queue does. Without an owner there, "
            "nothing is sent.",
        }

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        for name in ("replay_trust", "look_up_trust"):
            # A form that was open while trust was taken away is not to give it back unseen.
            self.fields[name].show_hidden_initial = True

    def clean_dashboard_url(self) -> str:
        pattern: str = self.cleaned_data["dashboard_url"]
        problem = pattern_problem(pattern) if pattern else ""
        if problem:
            raise forms.ValidationError(problem)
        return pattern

    def clean_settings(self) -> dict[str, Any]:
        """Nothing stands for none; what else is no object no adapter can read."""
        settings: Any = self.cleaned_data["settings"]
        if settings is not None and not isinstance(settings, dict):
            raise forms.ValidationError("Give an object, such as {}.")
        return settings or {}

    def clean_visible_parameters(self) -> list[str]:
        names: Any = self.cleaned_data["visible_parameters"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise forms.ValidationError('Give a list of names, such as ["order", "amount"].')
        return names

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        if self.errors:
            return cleaned
        for name in set(cleaned) - {"credential"}:
            setattr(self.instance, name, cleaned[name])
        if cleaned["credential"]:  # the adapter is to judge the new one
            self.instance.credential_sealed = seal(cleaned["credential"].encode())
        wrong = address_problem_of(self.instance, resolved=True)
        if wrong:
            self.add_error("base_url", f"Another address is needed: {wrong}.")
        for problem in adapter_problems(self.instance):
            self.add_error("settings", problem)
        return cleaned


# A year: what is due later than that is nobody's, and a time that no calendar has opens no case.
LONGEST = timedelta(days=366)
SPANS = (
    *("due_after", "tell_before", "tell_on_call_after", "tell_owners_after"),
    "tell_administrators_after",
)


class QueueForm(QueueFormBase):
    by: User  # whoever fills it in; the admin says who

    class Meta:
        model = ReviewQueue
        fields = (
            *("name", "slug", "tenant", "provider", "action", "owners", "due_after"),
            *("approvals_needed", "second_from"),
            *("tell_before", "tell_on_call_after", "tell_owners_after"),
            "tell_administrators_after",
        )
        help_texts = {
            "slug": "Its short name in commands and on the record.",
            "tenant": "Empty takes any. Owners may see this tenant and what was sent for it; "
            "where it is empty they see the cases of those tenants alone that they have a right "
            "on.",
            "provider": "Empty takes any. Of several queues the most specific one takes a hold.",
            "action": "Empty takes any; else as the workflow names it, such as refunds.create.",
            "owners": "They decide what is held here, and may see it. Whoever is taken off loses "
            "that right.",
            "due_after": "Hours:minutes:seconds after which a hold is late.",
            "approvals_needed": "With two, the first person's decision is a proposal: it counts "
            "once somebody else with the right “second” confirms it. Owners have that right.",
            "second_from": "From this amount on, in the operation's own currency, it takes two "
            "people anyway. Empty: no amount does.",
            "tell_before": "So long before that its assignee, or who is on call, hears of it; 0: "
            "not at all.",
            "tell_on_call_after": "So long after it who is on call hears.",
            "tell_owners_after": "So long after it all owners hear.",
            "tell_administrators_after": "So long after it the administrators hear.",
        }

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        for name in SPANS:
            if cleaned.get(name, timedelta()) > LONGEST:
                self.add_error(name, f"At most {LONGEST.days} days.")
        if cleaned.get("due_after", LONGEST) <= timedelta():
            self.add_error("due_after", "Longer than nothing: a case is not late as it comes.")
        if self.errors:
            return cleaned
        for name in ("tenant", "approvals_needed", "second_from"):
            setattr(self.instance, name, cleaned[name])
        try:
            ensure_may_give(cleaned["owners"], self.instance, self.by)
        except NotYoursToGive as error:
            self.add_error("owners", str(error))
        try:
            ensure_may_loosen(self.instance, self.by)
        except NotYoursToGive as error:
            self.add_error("approvals_needed", str(error))
        return cleaned


class ContractForm(ContractFormBase):
    """A new version of a contract, as its document."""

    text = forms.CharField(
        label="Document",
        max_length=MAX_CONTRACT_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 30, "class": "vLargeTextField"}),
        help_text="YAML or JSON. Start from the version that comes nearest: its page leads here "
        "with its text. Once added it never changes: a changed contract is a new version.",
    )

    class Meta:
        model = ContractVersion
        fields = ()

    def clean_text(self) -> str:
        text: str = self.cleaned_data["text"]
        try:
            document = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError) as error:  # the latter of a date that there is not
            raise forms.ValidationError(f"This is neither YAML nor JSON: {error}") from error
        except RecursionError as error:
            raise forms.ValidationError(NESTED) from error
        try:
            contract = parse_contract(document, where="document")
        except InvalidContract as error:
            raise forms.ValidationError(str(error)) from error
        taken = ContractVersion.objects.filter(slug=contract.slug, version=contract.version)
        if taken.exists():
            raise forms.ValidationError(
                f"version: {contract.slug} has a version {contract.version} already; a changed "
                "contract takes a new number"
            )
        self.document = document
        return text
