"""Short trials with real processes: a few kills, and everything must hold."""

from pathlib import Path

import pytest

from proof.kill.__main__ import main


@pytest.mark.timeout(120)
def test_nothing_is_lost_or_done_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers and client are killed again and again; all runs end as planned and no completed step runs again."""
    code = main(["--kills", "4", "--seed", "11", "--dir", str(tmp_path), "--drain-seconds", "30", "--quiet"])

    told = capsys.readouterr().out
    assert 0 == code, told
    assert "Nothing was lost and nothing was done twice." in told
    assert "Again: python -m proof.kill --store sqlite --kills 4 --seed 11 --workers 3" in told


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_nothing_is_lost_when_the_server_is_killed_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The PostgreSQL server loses its power in between; an outage is no failure of anything."""
    settings = ["--kills", "5", "--server-kills", "2", "--seed", "12", "--drain-seconds", "30", "--quiet"]
    code = main(["--store", "postgres", *settings, "--dir", str(tmp_path)])

    told = capsys.readouterr().out
    assert 0 == code, told
    assert "killed 2 times" in told
