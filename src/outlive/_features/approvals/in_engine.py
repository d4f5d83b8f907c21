"""Approvals in an engine."""

from outlive._features.approvals.links import LINK_CELLS, left_of_link
from outlive._features.approvals.verbs import Approvals
from outlive._kernel.client.client import Client
from outlive._kernel.in_engine import InEngine
from outlive._kernel.model.cells import Cells


def join(client: Client) -> None:
    """Let handles of runs approve and reject."""
    client.approvals = client.verbs_of(Approvals)


IN_ENGINE = InEngine(
    join=join,
    cells=(Cells(name=LINK_CELLS, holds="a link to decide, by its id", verb="link.change", left=left_of_link),),
)
