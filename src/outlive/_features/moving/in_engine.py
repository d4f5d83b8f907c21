"""Exports in an engine."""

from outlive._kernel.in_engine import InEngine
from outlive.client.client import Client
from outlive.client.exporting import Exporting


def join(client: Client) -> None:
    """Let handles of runs export them."""
    client.export = client.verbs_of(Exporting).export


IN_ENGINE = InEngine(join=join)
