"""Flows: workflows that are written as documents.

    orders = outlive.flow.load("orders.flow.yaml")
    run = await engine.start(orders, {"order": {"id": 7}}, id="order-7")

`Builder` writes a document from Python. What stands in `${{ ... }}` is on a page of its own: expressions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from outlive._features.flows.builder import Builder, Reference
from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.model import Document
from outlive._features.flows.document.schema import flow_schema as schema
from outlive._features.flows.flow import FlowWorkflow, register_flow
from outlive._features.flows.outside.secrets import reveal
from outlive._on_demand import on_demand
from outlive.errors.document import FlowError, FlowInputError, Problem

if TYPE_CHECKING:
    from outlive._features.flows.other_systems.import_document import import_document
    from outlive._features.flows.other_systems.imported import Imported

__all__ = [
    "Builder",
    "Document",
    "FlowError",
    "FlowInputError",
    "FlowWorkflow",
    "Imported",
    "Problem",
    "Reference",
    "import_document",
    "load",
    "parse",
    "reveal",
    "schema",
    "using",
]

_OTHER_SYSTEMS = "outlive._features.flows.other_systems"
__getattr__ = on_demand(
    __name__, {"import_document": f"{_OTHER_SYSTEMS}.import_document", "Imported": f"{_OTHER_SYSTEMS}.imported"}
)


def load(path: str | PathLike[str]) -> FlowWorkflow:
    """The flow in a file, YAML or JSON; this process can run it from now on, and means it by its name.

    Raises:
        FlowError: it cannot run as it is written; says everything that is wrong, with lines.
        OSError: the file cannot be read.
    """
    return parse(Path(path).read_bytes(), file=str(path))


def parse(text: str | bytes, *, file: str = "") -> FlowWorkflow:
    """The flow in a text; see `load`. `file` is what its problems call it."""
    flow = FlowWorkflow(parse_document(text, file, known=known_here()), file=file)
    register_flow(flow)
    return flow


@contextmanager
def using(table: Mapping[str, Any]) -> Iterator[None]:
    """Let the flows of this process have these settings for a while, in place of `[flows]` in `outlive.toml`: in tests.

    Args:
        table: as the table `[flows]` is: `{"http": {"allow_hosts": ["localhost"]}}`.

    Raises:
        SettingsError: it cannot be used.
    """
    from outlive._features.flows.outside import settings

    with settings.using(settings.read(dict(table), file="outlive.flow.using")):
        yield
