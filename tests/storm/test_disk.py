"""A disk that is full refuses writes, and takes them again when it has room."""

import os
import subprocess
import sys
from pathlib import Path

from proof.storm.disk import LimitedFiles, own_disk

WRITER = """
import sys
for line in sys.stdin:
    try:
        with open(sys.argv[1], "ab") as file:
            file.write(b"x" * 100_000)
            file.flush()
        print("written", flush=True)
    except OSError as error:
        print("refused", flush=True)
"""


def test_a_disk_of_its_own_can_be_filled_and_freed() -> None:
    """Everybody who writes there is refused; who may not mount has only a folder. Nothing is left of it."""
    with own_disk() as (disk, folder):
        assert os.path.ismount(folder) == (disk is not None)
        if disk is not None:
            free = disk.free
            asked = [ask(folder / "file", when) for when in (lambda _: None, disk.fill, lambda _: free())]
            assert ["written", "refused", "written"] == asked
    assert not folder.exists()


def test_the_files_of_a_process_can_be_limited_and_freed(tmp_path: Path) -> None:
    """Only the processes that are named are refused, and only for as long as it lasts."""
    limits = LimitedFiles()
    asked = [ask(tmp_path / "file", when) for when in (lambda _: None, limits.fill)]
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        limits.fill([other.pid])
        limits.free()
        asked.append(ask(tmp_path / "file", lambda _: None))
        other.kill()
    assert ["written", "refused", "written"] == asked


def ask(file: Path, when: object) -> str:
    """What a process hears that writes to the file after `when` was done to it."""
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as writer:
        assert callable(when)
        when([writer.pid])
        output, _ = writer.communicate("go\n")
    return output.strip()
