"""Two minutes with the application in examples/invoices; `make live` has more of it."""

from __future__ import annotations

import pytest

from proof.live.__main__ import main


@pytest.mark.live
@pytest.mark.timeout(420)
def test_two_minutes_with_the_application_do_no_harm(capsys: pytest.CaptureFixture[str]) -> None:
    """Its ledgers are exact and nothing grows while processes are killed, the server crashes, and releases change.

    It waits most of the time, so `.ci/parts` runs it beside the other tests, and it may take longer than they.
    """
    code = main(["--minutes", "2", "--agents", "1", "--orders", "0.8", "--strike-seconds", "8", "--quiet"])

    assert code == 0, capsys.readouterr().out
