"""What the OpenAPI document promises holds: a few requests for every operation. `make schema` sends more."""

from __future__ import annotations

import pytest

from outlive.http.operation import OPERATIONS
from proof.http.schema import explore, lines


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_no_request_has_an_answer_that_the_document_does_not_have() -> None:
    """One that fits and one that does not, for each operation: no status from 500 on, no body of another shape."""
    explorer = explore("memory:", examples=1)

    assert [] == lines(explorer.findings)
    assert set(OPERATIONS) == {name for name, _ in explorer.statuses}
