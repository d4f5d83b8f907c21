"""Approvals in an engine."""

from outlive._kernel.in_engine import InEngine
from outlive._model.cells import Cells
from outlive.client.approvals import Approvals
from outlive.client.client import Client
from outlive.client.decision_links import LINK_CELLS, left_of_link


def join(client: Client) -> None:
    """Let handles of runs approve and reject."""
    client.approvals = client.verbs_of(Approvals)


IN_ENGINE = InEngine(
    join=join,
    cells=(Cells(name=LINK_CELLS, holds="a link to decide, by its id", verb="link.change", left=left_of_link),),
)
