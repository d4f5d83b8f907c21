"""The JSON Schema of flows for editors."""

import json
from pathlib import Path

from outlive.flow import schema as flow_schema

FILE = Path(__file__).parents[2] / "docs" / "flow.schema.json"


def test_the_schema_in_the_repository_is_the_one_of_the_model() -> None:
    """Renew it with `json.dumps(outlive.flow.schema(), indent=2)`."""
    assert json.loads(FILE.read_text("utf-8")) == flow_schema()


def test_the_schema_explains_the_fields() -> None:
    """Editors show it where a field is written."""
    step = flow_schema()["$defs"]["FlowStep"]

    assert {"use", "with", "if", "after", "must_run", "on_error"} <= set(step["properties"])
    assert step["properties"]["if"]["description"].startswith("The step runs only if")
    assert step["additionalProperties"] is False
