"""`outlive flows batch`: a flow for each of many inputs, from JSONL or CSV.

Inputs are read a few hundred at a time and stored before the batch begins, and results are written as they are read, so
100,000 items need no more memory than 1,000. The id of the batch is what makes it go on: the same command with the same
id again reads no input, starts nothing twice, and writes the results of all items.
"""

from __future__ import annotations

import csv
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from outlive._features.flows.commands.files import app_option, file_named, load_apps, read_file
from outlive._features.flows.commands.runs import engine_for, some_store_option
from outlive.cli.edge import Mistake, counted, json_option, print_json, run
from outlive.cli.starting import PLACE, options_of, start_options
from outlive.cli.values import standard_input

if TYPE_CHECKING:
    from outlive._features.batches.batch import Batch
    from outlive._features.batches.values import BatchItem
    from outlive.engine import Engine

PROGRESS_SECONDS = 1.0
ITEMS = (*PLACE, "tags", "headers")
"""The options of a start that a batch has too; the place is that of each item."""
FIELD_CHARACTERS_MAX = 16 * 1024 * 1024


@click.command()
@click.argument("flow_name", metavar="NAME|FILE")
@click.argument("inputs", type=click.Path(dir_okay=False, allow_dash=True, path_type=Path))
@click.option(
    "--format", "form", type=click.Choice(["jsonl", "csv"]), help="Of INPUTS; by the end of its name unless given."
)
@click.option("--id", "batch_id", help="The id of the batch; the same id again goes on with the same batch.")
@click.option("--concurrency", type=click.IntRange(1), default=20, show_default=True, help="Items at once.")
@start_options(*ITEMS)
@click.option(
    "--order",
    type=click.Choice(["index", "finished"]),
    default="index",
    show_default=True,
    help="Results by the place of their input, when all have ended, or as they finish.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write results to this file.")
@click.option("--retry-failed", metavar="ID", help="A new batch of what has not succeeded in the batch of this id.")
@app_option
@some_store_option
@json_option
def batch(
    *,
    flow_name: str,
    inputs: Path,
    form: str | None,
    batch_id: str | None,
    concurrency: int,
    order: str,
    output: Path | None,
    retry_failed: str | None,
    apps: tuple[str, ...],
    url: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Run a flow once for each line of INPUTS (`-` for stdin), and write one line of JSON for each result.

    A line of JSONL is the input of one run; a row of CSV is an input with the columns as text fields. One item that
    fails does not stop the others. Results are {"index": 0, "output": ...} or {"index": 0, "error": ...}.

    With --store and --id the batch is durable: killed, the same command goes on, and only what is not done runs.

    Exit code 0: every item has succeeded. 1: one has failed. 2: the command is wrong.
    """
    if batch_id is not None and not url:
        raise Mistake("--id is for a batch that is kept: give --store URL too")
    if retry_failed is not None and not url:
        raise Mistake("--retry-failed needs the store of that batch: give --store URL")
    options = options_of(given, ITEMS)
    if retry_failed is not None and options:
        raise Mistake("--retry-failed takes the place, the tags and the headers of that batch; leave them out")
    options["concurrency"] = concurrency
    load_apps(apps)
    work = _Work(flow_name, inputs, form_of(inputs, form), batch_id, options, order, retry_failed)
    with _opened(output) as target:
        counts = run(
            work.run(url, target, has_worker=bool(apps) or file_named(flow_name) is not None, says=not as_json)
        )
    if as_json:
        print_json(counts)
    if counts["failed"]:
        sys.exit(1)


def form_of(inputs: Path, form: str | None) -> str:
    """Whether inputs are JSONL or CSV."""
    if form is not None:
        return form
    if inputs.suffix in (".csv", ".jsonl", ".ndjson"):
        return "csv" if inputs.suffix == ".csv" else "jsonl"
    raise Mistake(f"{inputs}: say --format jsonl or --format csv")


def _opened(output: Path | None) -> Any:
    from contextlib import nullcontext

    return nullcontext(sys.stdout) if output is None else output.open("w", encoding="utf-8")


def rows_of(inputs: Path, form: str) -> Iterator[Any]:
    """The inputs, one by one.

    Raises:
        Mistake: a line is not a JSON object, or a row has more fields than there are columns.
    """
    try:
        with standard_input() if str(inputs) == "-" else inputs.open(encoding="utf-8", newline="") as source:
            yield from _csv_rows(source, inputs) if form == "csv" else _json_rows(source, inputs)
    except OSError as error:
        raise Mistake(f"{inputs} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Mistake(f"{inputs} is not UTF-8 text") from None


def _json_rows(source: TextIO, inputs: Path) -> Iterator[Any]:
    import msgspec

    decode = msgspec.json.Decoder(dict[str, Any]).decode
    for number, line in enumerate(source, 1):
        if not line.strip():
            continue
        try:
            yield decode(line)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise Mistake(f"{inputs}:{number}: it is not a JSON object: {error}") from None


def _csv_rows(source: TextIO, inputs: Path) -> Iterator[Any]:
    csv.field_size_limit(FIELD_CHARACTERS_MAX)
    rows = csv.DictReader(source)
    try:
        for row in rows:
            if None in row or None in row.values():
                columns = len(rows.fieldnames or ())
                raise Mistake(
                    f"{inputs}:{rows.line_num}: the row does not have {columns} fields, as the first line has"
                )
            yield row
    except csv.Error as error:
        raise Mistake(f"{inputs}:{rows.line_num}: {error}") from None


class _Work:
    """One `outlive flows batch`."""

    def __init__(
        self,
        name: str,
        inputs: Path,
        form: str,
        batch_id: str | None,
        options: dict[str, Any],
        order: str,
        retry_failed: str | None,
    ) -> None:
        self._name, self._inputs, self._form = name, inputs, form
        self._id, self._options, self._order, self._retry_failed = batch_id, options, order, retry_failed
        self._read = 0

    async def run(self, url: str | None, target: TextIO, *, has_worker: bool, says: bool) -> dict[str, Any]:
        """Start the batch and write its results; how many there are."""
        flow = self._flow_of_file()
        async with engine_for(url or "memory:", has_worker=has_worker, flow=flow) as engine:
            batch = await self._start(engine, flow)
            if says:
                click.echo(f"batch {batch.id}" + (f": {counted(self._read, 'input')}" if self._read else ""), err=True)
            succeeded = failed = 0
            progress = _Progress(says=says)
            found = batch.items() if self._order == "finished" else self._in_order(batch, progress)
            async for item in found:
                _write(target, item)
                succeeded, failed = succeeded + (item.error is None), failed + (item.error is not None)
                progress.say(succeeded, failed)
            progress.say(succeeded, failed, is_last=True)
        return {"id": batch.id, "total": succeeded + failed, "succeeded": succeeded, "failed": failed}

    def _flow_of_file(self) -> Any:
        file = file_named(self._name)
        if file is None:
            return None
        from outlive._features.flows.flow import FlowWorkflow

        return FlowWorkflow(read_file(file).document, file=str(file))

    async def _start(self, engine: Engine, flow: Any) -> Batch[Any]:
        if self._retry_failed is not None:
            return await engine.batches.get(self._retry_failed).retry(id=self._id)
        if flow is None:
            flow = await engine.flows._find(self._name)
        return await engine.start_batch(flow, self._rows(), id=self._id, **self._options)

    def _rows(self) -> Iterator[Any]:
        for row in rows_of(self._inputs, self._form):
            self._read += 1
            yield row

    async def _in_order(self, batch: Batch[Any], progress: _Progress) -> AsyncIterator[BatchItem[Any]]:
        """Wait for the end, and say how far it is meanwhile; then every item by its place."""
        async for shown in batch.run.watch():
            progress.say(shown.get("succeeded", 0), shown.get("failed", 0))
        async for item in batch.outcomes():
            yield item


def _write(target: TextIO, item: BatchItem[Any]) -> None:
    import msgspec

    from outlive.cli.terminal import shown_json

    if item.error is None:
        plain: dict[str, Any] = {"index": item.index, "output": item.result}
    else:
        cause = item.error.__cause__ or item.error
        plain = {"index": item.index, "error": {"type": type(cause).__name__, "message": str(cause)}}
    target.write(shown_json(msgspec.json.encode(plain, enc_hook=str)).decode() + "\n")


class _Progress:
    """Says how far the batch is, not more often than once a second."""

    def __init__(self, *, says: bool) -> None:
        self._says = says
        self._next = 0.0
        self._last = ""

    def say(self, succeeded: int, failed: int, *, is_last: bool = False) -> None:
        """Write a line, if it is time."""
        if not self._says or (time.monotonic() < self._next and not is_last):
            return
        self._next = time.monotonic() + PROGRESS_SECONDS
        line = f"{counted(succeeded + failed, 'item')} done, {failed:,} of them failed"
        if line != self._last:
            self._last = line
            click.echo(line, err=True)
