"""The YAML documents in the guide of flows are flows."""

import pytest

from outlive._features.flows.document.known_names import Known, known_here
from outlive._features.flows.document.model import FlowStep
from outlive.flow import Document
from tests.docs.page import DOCS, Block, blocks_of
from tests.flow.corpus import problems_in

BLOCKS = [block for block in blocks_of(DOCS / "guides" / "flows.md") if block.info == "yaml" and "name:" in block.text]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"line {block.line}")
def test_each_document_in_the_guide_is_right(block: Block) -> None:
    """With the built-ins that there are."""
    assert problems_in(block.text, Known(known_here().built_ins, frozenset({"shop.charge"}))) == []


def test_the_guide_names_every_field() -> None:
    """The guide of flows has a row for every field of a flow and of a step."""
    text = (DOCS / "guides" / "flows.md").read_text("utf-8")
    rows = "".join(line for line in text.splitlines() if line.startswith("| `"))

    missing = [
        name for part in (Document, FlowStep) for name in part.__struct_encode_fields__ if f"`{name}`" not in rows
    ]
    assert missing == []
