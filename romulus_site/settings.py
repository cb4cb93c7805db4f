"""Settings, all from the environment; without any, everything runs on this machine alone.

`DATABASE_URL` and `BROKER_URL` point the same code at PostgreSQL and RabbitMQ or Redis servers.
Durations are in seconds, sizes in bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import dj_database_url

from romulus_site import embedded, keys
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
    "workflows",
    "reconciliation",
    "romulus_site",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "romulus_site.middleware.content_policy",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "romulus_site.middleware.session_ended",
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
            "builtins": ["romulus_site.templatetags.romulus"],
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
DATABASES["default"] |= {"CONN_MAX_AGE": 60, "CONN_HEALTH_CHECKS": True}

# --- broker ---------------------------------------------------------------------------------

# Hints only: early acknowledgement, no results, nothing to redeliver (docs/adr/0003).
CELERY_BROKER_URL = os.environ.get("BROKER_URL", "") or "pgmq://"
CELERY_BROKER_TRANSPORT_OPTIONS = (
    embedded.broker_options(DATABASES["default"]) if CELERY_BROKER_URL == "pgmq://" else {}
)
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_IGNORE_RESULT = True
# A broker that is away must not hold anybody up: the sweep publishes again.
CELERY_TASK_PUBLISH_RETRY = False
CELERY_TASK_DEFAULT_QUEUE = "advance"
CELERY_TASK_ROUTES = {"reconciliation.tasks.reconcile": {"queue": "reconcile"}}
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_WORKER_POOL = "threads"
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_ENABLE_REMOTE_CONTROL = False
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

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
ROMULUS_MAX_OUTPUT_BYTES = int(os.environ.get("ROMULUS_MAX_OUTPUT_BYTES", str(1024 * 1024)))
# Named points that kill the process with SIGKILL, for the kill tests; see workflows/failpoints.py.
ROMULUS_FAILPOINTS = words("ROMULUS_FAILPOINTS")

# --- people ---------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
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

# --- edges ----------------------------------------------------------------------------------

# Shown beside the clock on every page, such as "Production".
ROMULUS_ENVIRONMENT = os.environ.get("ROMULUS_ENVIRONMENT", "")

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True
STATIC_URL = "static/"
# Files are served from where they lie; a folder is only for a web server in front.
STATIC_ROOT = os.environ.get("STATIC_ROOT") or None
STATICFILES_DIRS = [BASE_DIR / "static"]
WHITENOISE_USE_FINDERS = True
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
