"""100,000 items of a flow, from a file, in a process that is killed three times."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.conftest import Command

ITEMS = 100_000
MEMORY_MAX_MB = 300
FLOW = """\
name: cli-many
input: { n: { type: integer } }
steps:
  a: { use: noop, with: { n: "${{ input.n }}" } }
output: "${{ steps.a.n + 1 }}"
"""


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_batch_has_one_result_for_each_item(command: Callable[..., Command], tmp_path: Path) -> None:
    """A batch that is killed three times goes on with the same command, in bounded memory and without its input file,
    to one result for each item."""
    (tmp_path / "many.flow.yaml").write_text(FLOW)
    inputs = tmp_path / "in.jsonl"
    inputs.write_text("".join(f'{{"n": {n}}}\n' for n in range(ITEMS)))
    kept = ("--store", "sqlite:many.db", "--id", "many", "-o", "out.jsonl")
    batch = ("flows", "batch", "many.flow.yaml", "in.jsonl", *kept)
    peak = 0.0
    for _ in range(3):
        killed = command(*batch, "--concurrency", "50")
        killed.says("items done")
        peak = max(peak, _memory(killed))
        killed.signal(signal.SIGKILL)
        killed.ends()
    inputs.unlink()

    last = command(*batch)
    while last.process.poll() is None:
        peak = max(peak, _memory(last))
        with suppress(subprocess.TimeoutExpired):
            last.process.wait(0.2)

    assert 0 == last.process.returncode, last.log
    with (tmp_path / "out.jsonl").open() as results:
        count = 0
        for index, line in enumerate(results):
            assert {"index": index, "output": index + 1} == json.loads(line)
            count += 1
    assert ITEMS == count
    assert peak < MEMORY_MAX_MB


def _memory(running: Command) -> float:
    """The most memory that a process has needed so far, in MB."""
    try:
        status = Path(f"/proc/{running.process.pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM")), 0.0)
