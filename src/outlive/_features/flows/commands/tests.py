"""`outlive flows test`: the tests inside documents."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from outlive._features.flows.commands.files import app_option, load_apps, read_file
from outlive.cli.edge import Mistake, counted, json_option, print_json, run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from outlive._features.flows.document.model import Document
    from outlive.testing.flow_cases import CaseResult


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--case", "cases", multiple=True, metavar="NAME", help="Only the test of this name; may be repeated.")
@click.option("--update", is_flag=True, help="Write the outputs that were found into the documents.")
@click.option("--diff", "with_diff", is_flag=True, help="Show how expected and found outputs differ, line by line.")
@app_option
@json_option
def test(
    *,
    files: tuple[Path, ...],
    cases: tuple[str, ...],
    update: bool,
    with_diff: bool,
    apps: tuple[str, ...],
    as_json: bool,
) -> None:
    """Run the tests inside documents, in memory: steps are mocked by name, and time skips.

    A flow that calls another one finds it if its document is among FILES.

    Exit code 0 if all passed, 1 if one failed or a document has problems, 2 if there is no such test.
    """
    load_apps(apps, *files)
    reports: list[dict[str, Any]] = []
    failed = passed = updated = 0
    documents = {file: read_file(file, warns=False).document for file in files}
    for file, document in documents.items():
        found = run(_run_all(document, cases, beside=[each for each in documents.values() if each is not document]))
        for result in found:
            failed, passed = failed + (not result.passed), passed + result.passed
            reports.append({"file": str(file), **_plain(result)})
            if not as_json:
                _print(file, result, with_diff=with_diff)
        if update and any(not result.passed for result in found):
            count = _update(file, found)
            if not as_json:
                click.echo(f"{file}: {counted(count, 'expected output')} written")
            failed, updated = failed - count, updated + count
    if cases and not reports:
        raise Mistake(f"no document has a test called {', '.join(cases)}")
    if as_json:
        print_json(reports)
    else:
        click.echo(_summed(passed, failed, updated))
    if failed:
        sys.exit(1)


def _summed(passed: int, failed: int, updated: int) -> str:
    parts = [f"{counted(passed, 'test')} passed"] if passed or not updated else []
    parts += [f"{counted(updated, 'test')} updated"] if updated else []
    return ", ".join([*parts, *([f"{failed} failed"] if failed else [])])


async def _run_all(document: Document, cases: tuple[str, ...], *, beside: Sequence[Document]) -> list[CaseResult]:
    from outlive.testing.flow_cases import run_case

    wanted = [case for case in document.tests if not cases or case.name in cases]
    return [await run_case(document, case, beside=beside) for case in wanted]


def _print(file: Path, result: CaseResult, *, with_diff: bool) -> None:
    click.echo(f"{'ok  ' if result.passed else 'FAIL'} {file}: {result.name}")
    for problem in result.problems:
        click.echo(f"       {problem}")
    if with_diff and not result.passed:
        for line in _diff(result):
            click.echo(f"       {line}")


def _diff(result: CaseResult) -> list[str]:
    from msgspec import UNSET

    if result.expected is UNSET or result.output is UNSET:
        return []
    return list(difflib.unified_diff(_lines(result.expected), _lines(result.output), "expected", "found", lineterm=""))


def _lines(value: Any) -> list[str]:
    import msgspec

    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode().splitlines()


def _plain(result: CaseResult) -> dict[str, Any]:
    from msgspec import UNSET

    plain: dict[str, Any] = {"name": result.name, "passed": result.passed, "problems": list(result.problems)}
    if result.output is not UNSET:
        plain["output"] = result.output
    if result.error_type:
        plain["error"] = {"type": result.error_type, "message": result.error}
    return plain


def _update(file: Path, results: list[CaseResult]) -> int:
    """Write found outputs in the place of expected ones, and leave everything else in the text as it is."""
    import msgspec
    from msgspec import UNSET

    from outlive._features.flows.document.reading import read

    text = file.read_text(encoding="utf-8")
    reading = read(text, str(file))
    found = {result.name: result for result in results if not result.passed and result.output is not UNSET}
    edits: list[tuple[int, int, str]] = []
    for number, case in enumerate(reading.data.get("tests", [])):
        result = found.get(case.get("name"))
        if result is None or "error" in case:
            continue
        value = msgspec.json.encode(result.output).decode()
        extent = reading.positions.extents.get(("tests", number, "output"))
        if extent is not None:
            end = extent.end.index
            written = text[extent.begin.index : end]
            edits.append((extent.begin.index, end, value + written[len(written.rstrip()) :]))
            continue
        name = reading.positions.extents[("tests", number, "name")]
        assert name.key is not None
        if not reading.positions.extents["tests", number].is_block:
            edits.append((name.end.index, name.end.index, f", output: {value}"))
            continue
        indent = " " * name.key.column
        line_end = text.find("\n", name.end.index)
        at = len(text) if line_end < 0 else line_end
        edits.append((at, at, f"\n{indent}output: {value}"))
    for begin, end, value in sorted(edits, reverse=True):
        text = text[:begin] + value + text[end:]
    file.write_text(text, encoding="utf-8")
    return len(edits)
