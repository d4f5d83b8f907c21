"""`manage.py outlive ...`: the command line on the store of the project; its `worker` runs the workflows."""

from __future__ import annotations

import os
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand

from outlive.cli import main
from outlive.errors import OutliveError
from outlive.integrations.django import environment


class Command(BaseCommand):
    """Hands everything after its name to the command line of Outlive."""

    help = "The command line of Outlive on the store of this project: worker, runs, queues, schedules, ..."

    def run_from_argv(self, argv: list[str]) -> None:
        """Django's own parser would refuse the options of our commands."""
        try:
            # The settings of the project count, also beside a variable that another program reads.
            os.environ |= environment()
        except (ImproperlyConfigured, OutliveError) as error:
            raise SystemExit(f"Error: {error}") from error
        arguments = argv[2:]
        if arguments[:1] == ["worker"]:
            arguments[1:1] = ["outlive.integrations.django:worker_engine"]
        main(args=arguments, prog_name=f"{os.path.basename(argv[0])} outlive")  # noqa: PTH119 (it is a name, not a file)

    def handle(self, *arguments: Any, **options: Any) -> None:
        """`call_command("outlive", "runs", "list")`."""
        self.run_from_argv(["manage.py", "outlive", *map(str, arguments)])
