"""Namespaces in an engine."""

from outlive._features.namespaces.quotas import QUOTA_CELL, QUOTA_UNDER_WAY_CELL
from outlive._kernel.in_engine import InEngine
from outlive._kernel.model.cells import Cells

IN_ENGINE = InEngine(
    cells=(
        Cells(name=QUOTA_CELL, holds="how much the callers of a namespace may start", verb="quota.change"),
        Cells(name=QUOTA_UNDER_WAY_CELL, holds="the starts that a quota has let in and that are not written yet"),
    )
)
