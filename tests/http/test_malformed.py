"""Bad requests beside good ones, to a real server: a sample of `make malformed`."""

from __future__ import annotations

import pytest

from proof.http.malformed import prove


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_bad_requests_have_clear_answers_and_other_clients_are_served() -> None:
    """400 to 499 with a reason, and the memory stays. (The rate that others keep is for `make malformed` on a machine
    that has nothing else to do.)"""
    report = prove(requests=300, seed=1)

    assert [] == report.findings
    assert not [status for status in report.answers if status.startswith("5")]
