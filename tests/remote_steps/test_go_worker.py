"""The worker in Go, as a project has it that has copied it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import outlive
from outlive.types import WorkerOptions
from tests.http.test_tasks import EXAMPLES, UNFIT, away, doubled, served, without_ids
from tests.remote_steps.go_build import build

MAIN = """
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	worker "trial/worker"
)

func main() {
	ctx, stop := context.WithCancel(context.Background())
	w := worker.New(os.Args[1], worker.Options{Queue: "sums", Name: "go-1"})
	w.Step("http_double", func(task *worker.Task) (any, error) {
		var number int
		if err := task.Read(&number); err != nil {
			return nil, worker.Final(err)
		}
		if err := task.Progress(map[string]any{"number": number}); err != nil {
			return nil, err
		}
		switch number {
		case 2:
			return nil, worker.Final(errors.New("not this one"))
		case 3:
			return "three", nil
		case 4:
			return make(chan int), nil
		case 6:
			stop()
			panic("no number")
		}
		return number * 2, nil
	})
	fmt.Println(w.Run(ctx))
}
"""


@pytest.mark.slow
async def test_the_worker_in_go_does_tasks(tmp_path: Path, go: str) -> None:
    """The worker in Go does the tasks, waits for a server that is away, and reports refusals, errors and panics."""
    source = (EXAMPLES / "worker.go").read_text("utf-8").replace("= time.Second", "= time.Second / 100")
    source = source.replace("triesMax    = 30", "triesMax    = 3000")
    (tmp_path / "worker").mkdir()
    (tmp_path / "worker" / "worker.go").write_text(source, "utf-8")
    (tmp_path / "main.go").write_text(MAIN, "utf-8")
    program = await asyncio.to_thread(build, tmp_path, go)
    async with outlive.Engine("memory:", poll_seconds=0.02, worker=WorkerOptions(tune=False)) as engine:
        run = await engine.start(doubled, [1, 2, 3, 4, 5, 6])
        pipe = asyncio.subprocess.PIPE
        async with away() as (port, heard):
            running = await asyncio.create_subprocess_exec(
                program, f"http://127.0.0.1:{port}", stdout=pipe, stderr=pipe
            )
            await heard.wait()
        async with served(engine, port):
            said, errors = await running.communicate()

        assert (running.returncode, said, errors) == (0, b"context canceled\n", b""), errors.decode()
        assert without_ids(await run.result(timeout=10)) == [
            2,
            "errors.errorString: not this one",
            f"fmt.wrapError: the server refuses the request: 422: {UNFIT}",
            "json.UnsupportedTypeError: json: unsupported type: chan int",
            10,
            "panic: panic: no number",
        ]
