"""A Django project on PostgreSQL: its tables in the schema `public`, Outlive's in a schema of its own."""

import os
from urllib.parse import unquote, urlsplit

DATABASE_URL = os.environ.get("DATABASE_URL", "postgresql://shop@localhost:5432/shop")
_parts = urlsplit(DATABASE_URL)

SECRET_KEY = os.environ.get("SECRET_KEY", "only for this example")
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
INSTALLED_APPS = ["outlive.integrations.django", "shop"]
ROOT_URLCONF = "urls"
USE_TZ = True
TIME_ZONE = "UTC"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": _parts.path.removeprefix("/"),
        "USER": unquote(_parts.username or ""),
        "PASSWORD": unquote(_parts.password or ""),
        "HOST": _parts.hostname or "",
        "PORT": str(_parts.port or ""),
    }
}
OUTLIVE = {"STORE": DATABASE_URL}
