"""The Django app: it imports the module `workflows` of every installed app, as the admin does with `admin`."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.module_loading import autodiscover_modules


class OutliveConfig(AppConfig):
    """The entry for INSTALLED_APPS of Django."""

    name = "outlive.integrations.django"
    label = "outlive"
    verbose_name = "Outlive"

    def ready(self) -> None:
        """Let the workflows and steps of all apps be known in this process."""
        autodiscover_modules("workflows")
