"""A witness writes down every message, whichever process is killed meanwhile."""

import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive.testing.child_process import ChildProcess, end_all
from outlive.testing.line_file import read
from proof.storm.effects import Effect
from proof.storm.witness import SCHEME, write


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "effects.jsonl"


@pytest.fixture
def address(tmp_path: Path, file: Path) -> Iterator[str]:
    """A witness that listens."""
    with tempfile.TemporaryDirectory(prefix="outlive-") as folder:  # The path of a socket must be short.
        path = str(Path(folder) / "witness")
        witness = ChildProcess("proof.storm.witness", path, str(file), log=tmp_path / "witness.log")
        assert witness.read_line(), witness.last_words()
        yield SCHEME + path
        end_all([witness])
        assert 0 == witness.exit_code, witness.last_words()


def line(number: int) -> Effect:
    return Effect(at=1.0, pid=number, mark="begin")


def test_an_acknowledged_line_is_in_the_file(address: str, file: Path) -> None:
    """A line is in the file when `write` returns."""
    write(address, line(1))
    assert [line(1)] == read(file, Effect)
    write(address, line(2))
    assert [line(1), line(2)] == read(file, Effect)


def test_many_may_speak_at_once(address: str, file: Path) -> None:
    """Lines of several threads are whole, and none is missing."""
    threads = [threading.Thread(target=write, args=(address, line(number))) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(range(20)) == {each.pid for each in read(file, Effect)}


def test_a_line_that_a_kill_cut_off_was_not_said(address: str, file: Path) -> None:
    """Half a line is thrown away, and the next speaker is heard."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.connect(address.removeprefix(SCHEME))
        wire.sendall(b'{"at":1.0,"pi')
    write(address, line(3))

    assert [line(3)] == read(file, Effect)


def test_without_a_witness_it_is_an_ordinary_file(file: Path) -> None:
    """A place without the scheme is a path."""
    write(str(file), line(4))

    assert [line(4)] == read(file, Effect)
