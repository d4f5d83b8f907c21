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
from typing import Any

from outlive._define.flow.builder import Builder, Reference
from outlive._define.flow.checking import parse_document
from outlive._define.flow.document import Document
from outlive._define.flow.flow import FlowWorkflow, register_flow
from outlive._define.flow.imported import Imported
from outlive._define.flow.importing import import_document
from outlive._define.flow.known import known_here
from outlive._define.flow.problems import FlowError, FlowInputError, Problem
from outlive._define.flow.schema import flow_schema as schema
from outlive._define.flow.secrets import reveal

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
    from outlive._define.flow import settings

    with settings.using(settings.read(dict(table), file="outlive.flow.using")):
        yield
