"""`outlive greetings`."""

from __future__ import annotations

import click

from outlive.cli.edge import ask, store_option
from outlive.engine.view import view_of
from tests.house.greetings.verbs import Greetings


@click.command
@store_option
def greetings(*, url: str) -> None:
    """Show the greetings of a store."""
    for it in ask(url, lambda engine: view_of(engine).verbs_of(Greetings).list()):
        click.echo(f"{it.text}{', answered' if it.is_answered else ''}")
