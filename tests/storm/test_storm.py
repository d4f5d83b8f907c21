"""Short storms over real processes: everything must hold."""

from pathlib import Path

import pytest

from proof.storm.__main__ import main

pytestmark = pytest.mark.timeout(180)
CHAOS = ["chaos", "--kills", "6", "--down-seconds", "2.5", "--drain-seconds", "60", "--quiet"]
KILL = ["kill", "--drain-seconds", "30", "--quiet"]


def test_kills_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Workers and client are killed again and again; all runs end as planned and no completed step runs again."""
    code = main([*KILL, "--kills", "4", "--seed", "11", "--dir", str(tmp_path)])

    output = capsys.readouterr().out
    assert 0 == code, output
    assert "Nothing was lost and nothing was done twice." in output
    assert "Again: python -m proof.storm kill --store sqlite --kills 4 --seed 11 --workers 3" in output


@pytest.mark.slow
def test_kills_of_the_server_lose_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The PostgreSQL server loses its power in between; an outage is not a failure of anything."""
    settings = ["--store", "postgres", "--kills", "5", "--server-kills", "2", "--seed", "12"]
    code = main([*KILL, *settings, "--dir", str(tmp_path)])

    output = capsys.readouterr().out
    assert 0 == code, output
    assert "      2  the server was killed with -9" in output


@pytest.mark.slow
def test_a_storm_over_sqlite_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kills, a freeze, a full disk, a locked file and an orderly restart: nothing is lost, nothing is done twice."""
    code = main([*CHAOS, "--store", "sqlite", "--seed", "21", "--dir", str(tmp_path)])

    output = capsys.readouterr().out
    assert 0 == code, output
    assert "Again: python -m proof.storm chaos --store sqlite --kills 6 --seed 21" in output


@pytest.mark.slow
def test_a_storm_over_postgresql_does_no_harm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A storm over PostgreSQL with kills of the server and lines cut between a commit and its answer does no harm."""
    code = main([*CHAOS, "--store", "postgres", "--seed", "22", "--dir", str(tmp_path)])

    output = capsys.readouterr().out
    assert 0 == code, output
    assert "a line was to be cut after a commit" in output
