"""Short storms over real processes: every fault there is, and everything must hold."""

from pathlib import Path

import pytest

from proof.chaos.__main__ import main

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]
SHORT = ["--kills", "6", "--down-seconds", "2.5", "--drain-seconds", "60", "--quiet"]


def test_a_storm_over_sqlite_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills, a freeze, a full disk, a locked file and an orderly restart: nothing is lost, nothing is done twice."""
    code = main(["--store", "sqlite", "--seed", "21", "--dir", str(tmp_path), *SHORT])

    told = capsys.readouterr().out
    assert 0 == code, told
    assert "Again: python -m proof.chaos --store sqlite --kills 6 --seed 21" in told


def test_a_storm_over_postgresql_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same, and a server that is killed, and lines that are cut between a commit and its answer."""
    code = main(["--store", "postgres", "--seed", "22", "--dir", str(tmp_path), *SHORT])

    told = capsys.readouterr().out
    assert 0 == code, told
    assert "a line was to be cut after a commit" in told
