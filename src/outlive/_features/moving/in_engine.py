"""Exports in an engine."""

from outlive._features.moving.exporting import Exporting
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine


def join(client: Client) -> None:
    """Let handles of runs export them."""
    client.export = client.verbs_of(Exporting).export


IN_ENGINE = InEngine(join=join)
