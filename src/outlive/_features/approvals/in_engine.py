"""Approvals in an engine."""

from outlive._kernel.in_engine import InEngine
from outlive._model.cells import Cells
from outlive.client.decision_links import LINK_CELLS, left_of_link

IN_ENGINE = InEngine(
    cells=(Cells(name=LINK_CELLS, holds="a link to decide, by its id", verb="link.change", left=left_of_link),)
)
