"""Signing in and one's own account. The views are allauth's, but for the list of sessions; those
of its pages that this console has no use for (signing up, changing an address) have no address."""

from __future__ import annotations

from allauth.account import views as account
from allauth.mfa.base import views as factors
from allauth.mfa.recovery_codes import views as codes
from allauth.mfa.totp import views as totp
from allauth.mfa.webauthn import views as passkeys
from allauth.socialaccount import views as social
from django.urls import include, path, re_path
from django.views.decorators.http import require_POST

from romulus_site.accounts import views

# Two names for one address: ours, and the one that allauth goes by.
NAMED_TWICE = [
    path("login/", account.login, name="login"),
    path("login/", account.login, name="account_login"),
    path("logout/", require_POST(account.logout), name="logout"),
    path("logout/", require_POST(account.logout), name="account_logout"),
]

PASSWORD = [
    path("password/", account.password_change, name="account_change_password"),
    path("password/first/", account.password_set, name="account_set_password"),
    path("reset/", account.password_reset, name="account_reset_password"),
    path("reset/sent/", account.password_reset_done, name="account_reset_password_done"),
    re_path(
        r"^reset/(?P<uidb36>[0-9A-Za-z]+)-(?P<key>[^/]+)/$",
        account.password_reset_from_key,
        name="account_reset_password_from_key",
    ),
    path(
        "reset/done/",
        account.password_reset_from_key_done,
        name="account_reset_password_from_key_done",
    ),
    path("confirm/", account.reauthenticate, name="account_reauthenticate"),
    path("closed/", account.account_inactive, name="account_inactive"),
]

SECOND_FACTORS = [
    path("", factors.index, name="mfa_index"),
    path("code/", factors.authenticate, name="mfa_authenticate"),
    path("confirm/code/", factors.reauthenticate, name="mfa_reauthenticate"),
    path("app/", totp.activate_totp, name="mfa_activate_totp"),
    path("app/remove/", totp.deactivate_totp, name="mfa_deactivate_totp"),
    path("codes/", codes.view_recovery_codes, name="mfa_view_recovery_codes"),
    path("codes/new/", codes.generate_recovery_codes, name="mfa_generate_recovery_codes"),
    path("codes/file/", codes.download_recovery_codes, name="mfa_download_recovery_codes"),
    path("passkeys/", passkeys.list_webauthn, name="mfa_list_webauthn"),
    path("passkeys/add/", passkeys.add_webauthn, name="mfa_add_webauthn"),
    path("passkeys/login/", passkeys.login_webauthn, name="mfa_login_webauthn"),
    path("confirm/passkey/", passkeys.reauthenticate_webauthn, name="mfa_reauthenticate_webauthn"),
    path("passkeys/<int:pk>/remove/", passkeys.remove_webauthn, name="mfa_remove_webauthn"),
    path("passkeys/<int:pk>/name/", passkeys.edit_webauthn, name="mfa_edit_webauthn"),
]

# Under /account/oidc/sso/: the way to the provider, and back.
SINGLE_SIGN_ON = [
    path("", include("allauth.socialaccount.providers.openid_connect.urls")),
    path("oidc/cancelled/", social.login_cancelled, name="socialaccount_login_cancelled"),
    path("oidc/error/", social.login_error, name="socialaccount_login_error"),
]

urlpatterns = [
    *NAMED_TWICE,
    path("account/", include(PASSWORD)),
    path("account/factors/", include(SECOND_FACTORS)),
    path("account/", include(SINGLE_SIGN_ON)),
    path("account/sessions/longer/", views.longer, name="session_longer"),
    path("account/tokens/", views.tokens, name="own_tokens"),
    path("account/sessions/", views.sessions, name="usersessions_list"),
]
