"""Settings, all from the environment; without any, everything runs on this machine alone.

`DATABASE_URL` and `BROKER_URL` point the same code at PostgreSQL and RabbitMQ or Redis servers.
Durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dj_database_url
from kombu import Queue

from romulus_site import embedded, keys
from romulus_site.accounts.environment import mail_settings, openid_settings
from romulus_site.embedded.queue import QUEUES
from romulus_site.log import logging_config

BASE_DIR = Path(__file__).resolve().parent.parent


def flag(name: str, default: bool = False) -> bool:
    return os.environ.get(name, str(default)).lower() in {"1", "true", "yes", "on"}


def words(name: str, default: str = "") -> list[str]:
    return [word.strip() for word in os.environ.get(name, default).split(",") if word.strip()]


# The folder of this installation: embedded PostgreSQL, generated keys, sockets. Ignored by git.
ROMULUS_DATA = Path(os.environ.get("ROMULUS_DATA", BASE_DIR / ".romulus"))

# --- core -----------------------------------------------------------------------------------

DEBUG = flag("DEBUG")
# Several keys while one is being replaced: the first signs and seals, all of them open.
ROMULUS_KEYS = words("ROMULUS_KEYS") or keys.generated(ROMULUS_DATA)
SECRET_KEY = os.environ.get("SECRET_KEY") or ROMULUS_KEYS[0]
ALLOWED_HOSTS = words("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1]")
CSRF_TRUSTED_ORIGINS = words("CSRF_TRUSTED_ORIGINS")
ROOT_URLCONF = "romulus_site.urls"
WSGI_APPLICATION = "romulus_site.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django_htmx",
    "guardian",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "workflows",
    "reconciliation",
    "romulus_site",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # After the files, which lie compressed; its answers differ in length each time, so that what
    # a page keeps secret cannot be told from how well it compresses.
    "django.middleware.gzip.GZipMiddleware",
    "romulus_site.middleware.content_policy",
    "romulus_site.middleware.hooks_apart",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "romulus_site.middleware.own_profile",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "romulus_site.middleware.session_ended",
    "romulus_site.accounts.rendered_for.only_whom_it_was_rendered_for",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "romulus_site.context_processors.shell",
            ],
            "builtins": [
                "romulus_site.templatetags.romulus",
                "romulus_site.accounts.rendered_for",
            ],
        },
    },
]

# --- database -------------------------------------------------------------------------------

DATABASE_URL = os.environ.get("DATABASE_URL", "")
ROMULUS_EMBEDDED = not DATABASE_URL
DATABASES: dict[str, dict[str, Any]] = {
    "default": dict(
        embedded.database_settings(ROMULUS_DATA)
        if ROMULUS_EMBEDDED
        else dj_database_url.parse(DATABASE_URL)
    )
}
DATABASES["default"] |= {
    "ENGINE": "romulus_site.database",
    "CONN_MAX_AGE": 60,
    "CONN_HEALTH_CHECKS": True,
    # A pooler may send the next rows' question to a session that has no such cursor.
    "DISABLE_SERVER_SIDE_CURSORS": True,
}
# Each connection prepares the hot statements once (workflows/sql). A pooler that gives each
# transaction another connection (PgBouncer's transaction mode) cannot keep them: turn it off there.
ROMULUS_PREPARE = flag("ROMULUS_PREPARE", default=True)

# --- broker ---------------------------------------------------------------------------------

# Hints only: early acknowledgement, no results, nothing to redeliver (docs/adr/0002). One is tried
# once and for some seconds: a broker that is away, or swallows what it is sent, holds nobody up.
CELERY_BROKER_URL = os.environ.get("BROKER_URL", "") or "pgmq://"
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {"max_retries": 0}
match CELERY_BROKER_URL.partition(":")[0]:
    case "pgmq":
        # The database itself. Where DATABASE_URL leads through a pooler, the queues need a way of
        # their own, because they LISTEN: BROKER_URL=pgmq://user:password@host:5432/name.
        CELERY_BROKER_TRANSPORT_OPTIONS |= embedded.broker_options(
            DATABASES["default"]
            if CELERY_BROKER_URL == "pgmq://"
            else dict(dj_database_url.parse(CELERY_BROKER_URL.replace("pgmq", "postgres", 1)))
        )
        CELERY_BROKER_URL = "pgmq://"
    case "redis" | "rediss":
        CELERY_BROKER_TRANSPORT_OPTIONS |= {
            "socket_timeout": 5,
            "socket_connect_timeout": 5,
            "health_check_interval": 10,
        }
    case "amqp" | "amqps" | "pyamqp":
        CELERY_BROKER_TRANSPORT_OPTIONS |= {"confirm_publish": True}
# Until a connection that went silent is given up: twice this.
CELERY_BROKER_HEARTBEAT = 10
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
# However long it is away: a worker that gave up would be silent when it is back.
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_IGNORE_RESULT = True
# A broker that is away must not hold anybody up: the sweep publishes again.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_DEFAULT_QUEUE = "advance"
# What may wait for somebody else's answer keeps no run waiting.
CELERY_TASK_ROUTES = {
    "reconciliation.tasks.reconcile": {"queue": "reconcile"},
    "reconciliation.tasks.carry_out_bulk": {"queue": "reconcile"},
    "reconciliation.tasks.deliver": {"queue": "reconcile"},
}
CELERY_TASK_CREATE_MISSING_QUEUES = True
if CELERY_BROKER_URL == "pgmq://":
    # They are made once, by ensure_pgmq. Whoever declares one runs DDL with the first message of
    # each connection: after an outage everybody would wait for the locks of everybody, for seconds,
    # and for as long as it takes those of a frozen process.
    CELERY_TASK_QUEUES = [Queue(name, routing_key=name, no_declare=True) for name in QUEUES]
CELERY_WORKER_CONSUMER = "romulus_site.consumer:Consumer"
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
# After an outage a worker would take fewer messages until the steps that it works on have ended.
CELERY_WORKER_ENABLE_PREFETCH_COUNT_REDUCTION = False
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

# --- storage --------------------------------------------------------------------------------

# Outputs too large for a row. By default files of the owner alone, never served. With several
# machines they lie in a bucket, as users of django-storages know it: install django-storages[s3],
# set ROMULUS_OUTPUTS_BACKEND to storages.backends.s3.S3Storage, ROMULUS_OUTPUTS_OPTIONS to such as
# {"bucket_name": "romulus-outputs", "endpoint_url": "https://…"}, and give credentials as its
# client finds them (AWS_ACCESS_KEY_ID, …). The bucket is private and for nothing else. If it keeps
# versions or copies, its own rules must end them: a purge removes what the storage shows. Its
# client must give up in seconds, not minutes.
ROMULUS_OUTPUTS_BACKEND = os.environ.get("ROMULUS_OUTPUTS_BACKEND", "")
ROMULUS_OUTPUTS_OPTIONS = json.loads(os.environ.get("ROMULUS_OUTPUTS_OPTIONS", "{}"))
# The folder into which `collectstatic` gathers the files of the pages, compressed and named by
# their content (`up` does it by itself). Without it they are served as they lie.
STATIC_ROOT = os.environ.get("STATIC_ROOT") or None
STORAGES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "romulus_site.static_files.Gathered"
        if STATIC_ROOT
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
    "outputs": {"BACKEND": ROMULUS_OUTPUTS_BACKEND, "OPTIONS": ROMULUS_OUTPUTS_OPTIONS}
    if ROMULUS_OUTPUTS_BACKEND
    else {
        "BACKEND": "workflows.storage.PrivateFiles",
        "OPTIONS": {"location": ROMULUS_DATA / "outputs"} | ROMULUS_OUTPUTS_OPTIONS,
    },
}
# Larger ones go to the storage. 64 KiB: most outputs stay in the row that is written anyhow, and
# what a page of runs reads stays small.
ROMULUS_INLINE_OUTPUT_BYTES = int(os.environ.get("ROMULUS_INLINE_OUTPUT_BYTES", str(64 * 1024)))
# An object that nothing refers to may be one whose commit is under way. A day is far longer than
# any commit, and no trouble to keep.
ROMULUS_ORPHAN_SECONDS = float(os.environ.get("ROMULUS_ORPHAN_SECONDS", "86400"))
# How long the body of an event that nobody took is kept beyond its source's `retain`: 90 days.
ROMULUS_UNCONSUMED_SECONDS = float(os.environ.get("ROMULUS_UNCONSUMED_SECONDS", "7776000"))

# --- engine ---------------------------------------------------------------------------------

ROMULUS_WORKFLOWS = words(
    "ROMULUS_WORKFLOWS",
    "workflows.examples.ticket_triage,workflows.examples.replacement_worker,"
    "workflows.examples.refund",
)
# 15 s: long enough to ride out a slow garbage collection or a short network cut, short enough
# that a killed worker's runs go on before anyone is called.
ROMULUS_LEASE_SECONDS = float(os.environ.get("ROMULUS_LEASE_SECONDS", "15"))
ROMULUS_SWEEP_SECONDS = float(os.environ.get("ROMULUS_SWEEP_SECONDS", "1"))
ROMULUS_MAX_INPUT_BYTES = int(os.environ.get("ROMULUS_MAX_INPUT_BYTES", str(256 * 1024)))
# How long a request may take to come in whole; a sender that is slower keeps no thread.
ROMULUS_REQUEST_SECONDS = float(os.environ.get("ROMULUS_REQUEST_SECONDS", "30"))
# Written and read back whole: one of this size takes some 200 MB of a worker's memory meanwhile,
# and 500 MB when it is sealed.
ROMULUS_MAX_OUTPUT_BYTES = int(os.environ.get("ROMULUS_MAX_OUTPUT_BYTES", str(64 * 1024 * 1024)))
# Providers are called at public addresses alone, but for those named here, by provider or for all:
# PROVIDER=NETWORK or *=NETWORK, a port behind it if only that is meant, such as
# "payments=10.1.0.0/16,*=[::1]:8100". Whoever may set a provider up can aim workers at these.
ROMULUS_ALLOWED_ADDRESSES = words("ROMULUS_ALLOWED_ADDRESSES")
# When dispatch is turned on again, so many of the writes that waited are looked at each second.
ROMULUS_RELEASE_PER_SECOND = float(os.environ.get("ROMULUS_RELEASE_PER_SECOND", "10"))
# Named points that kill the process with SIGKILL, for the kill tests; see workflows/failpoints.py.
ROMULUS_FAILPOINTS = words("ROMULUS_FAILPOINTS")

# --- people ---------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "romulus_site.accounts.backend.WithProfile",
    "guardian.backends.ObjectPermissionBackend",
]
ANONYMOUS_USER_NAME = None  # guardian: no anonymous user; the console is closed by default
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "review"
LOGOUT_REDIRECT_URL = "login"
SESSION_ENGINE = "romulus_site.accounts.session_store"
# A session ends so long after signing in, whatever is done in it: polling keeps none alive.
SESSION_COOKIE_AGE = int(os.environ.get("ROMULUS_SESSION_SECONDS", str(12 * 3600)))

# Accounts are made by administrators (docs/accounts.md, docs/adr/0009). Their address is in the
# user's own e-mail field, which administrators fill, so it needs no confirming.
ACCOUNT_ADAPTER = "romulus_site.accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {"login": "romulus_site.accounts.forms.LoginForm"}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_UNKNOWN_ACCOUNTS = False  # a stranger's address gets no mail from us
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 900
# Behind so many proxies that append to X-Forwarded-For; throttling counts by the client's address.
ALLAUTH_TRUSTED_PROXY_COUNT = int(os.environ.get("ROMULUS_PROXIES", "0"))

MFA_ADAPTER = "romulus_site.accounts.adapters.MFAAdapter"
MFA_FORMS = {
    "add_webauthn": "romulus_site.accounts.passkeys.AddForm",
    "authenticate_webauthn": "romulus_site.accounts.passkeys.AuthenticateForm",
    "login_webauthn": "romulus_site.accounts.passkeys.LoginForm",
    "reauthenticate_webauthn": "romulus_site.accounts.passkeys.ReauthenticateForm",
}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_TOTP_ISSUER = "Romulus"
MFA_TOTP_TOLERANCE = 1  # periods of 30 s: telephones are seldom exact

# OpenID Connect: ROMULUS_OIDC_SERVER, _CLIENT_ID, _CLIENT_SECRET, and _NAME for the button.
SOCIALACCOUNT_ADAPTER = "romulus_site.accounts.adapters.SocialAccountAdapter"
SOCIALACCOUNT_PROVIDERS = openid_settings(os.environ)
# The way there is a link: a form that leads to another site is what the content policy forbids.
SOCIALACCOUNT_LOGIN_ON_GET = True

# What throttles signing in counts in the database, so that many consoles count together.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "romulus_cache",  # made by a migration
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
    # How many events a source delivered in a minute: in each process, since it is asked for each.
    "deliveries": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"},
}

# --- e-mail ---------------------------------------------------------------------------------

# Such as smtp+tls://user:password@mail.example.org:587. Without one, what would be sent stands in
# the console's log. EMAIL_FROM is who it is from.
MAIL = mail_settings(os.environ.get("EMAIL_URL", ""))
EMAIL_BACKEND = MAIL.backend
EMAIL_HOST, EMAIL_PORT = MAIL.host, MAIL.port
EMAIL_HOST_USER, EMAIL_HOST_PASSWORD = MAIL.user, MAIL.password
EMAIL_USE_TLS, EMAIL_USE_SSL = MAIL.use_tls, MAIL.use_ssl
EMAIL_TIMEOUT = MAIL.timeout
DEFAULT_FROM_EMAIL = os.environ.get("EMAIL_FROM", "romulus@localhost")

# --- notifications --------------------------------------------------------------------------

# Where people reach the console, such as https://romulus.example.com: what links in notifications
# begin with. Empty: notifications hold no links; `manage.py up` puts its own address there.
ROMULUS_CONSOLE_URL = os.environ.get("ROMULUS_CONSOLE_URL", "").rstrip("/")

# How long it is kept what people were told and how it got to them: 90 days, and for as long as the
# case is open. What happened stands in the ledger and the audit record for good.
ROMULUS_TOLD_SECONDS = float(os.environ.get("ROMULUS_TOLD_SECONDS", "7776000"))

# --- edges ----------------------------------------------------------------------------------

# Shown beside the clock on every page, such as "Production".
ROMULUS_ENVIRONMENT = os.environ.get("ROMULUS_ENVIRONMENT", "")

# Who may read /metrics: whoever has this token. Without one only this very machine (metrics.py).
ROMULUS_METRICS_TOKEN = os.environ.get("ROMULUS_METRICS_TOKEN", "")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
FORMAT_MODULE_PATH = "romulus_site.formats"
USE_TZ = True
STATIC_URL = "static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = not STATIC_ROOT
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
# TLS is ended in front of the console on many machines; on one machine there is none.
ROMULUS_TLS = flag("ROMULUS_TLS")
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ROMULUS_TLS
SECURE_HSTS_SECONDS = 31_536_000 if ROMULUS_TLS else 0
if ROMULUS_TLS:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGGING = logging_config(os.environ.get("ROMULUS_LOG_LEVEL", "INFO"))
