"""`outlive flows check`, `schema`, `new` and `import`: documents as files, without a store."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from outlive.cli.completing import programs
from outlive.cli.edge import Mistake, ask, counted, json_option, print_file, print_json, say, server_flag, store_flag
from outlive.cli.values import text_of

if TYPE_CHECKING:
    from outlive._features.flows.document.known_names import Listed
    from outlive._features.flows.document.model import Document
    from outlive.engine import Engine
    from outlive.errors.document import Problem

app_option = click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="APP",
    shell_complete=programs,
    help="A file or module that defines the steps which the flow uses; may be repeated.",
)

TEMPLATE = """\
# yaml-language-server: $schema={schema}
name: {name}
description: Say hello, and wait a little.

input:
  who: {{ type: string, default: world }}

steps:
  greet:
    use: noop                       # a built-in; or the name of a step or workflow of yours, as shop.reserve
    with: {{ text: "Hello, ${{{{ input.who }}}}!" }}
  rest:
    use: sleep
    after: [greet]
    must_run: true
    with: {{ seconds: 1 }}

output: "${{{{ steps.greet.text }}}}"

tests:
  - name: greets whom it is given
    input: {{ who: Ann }}
    output: Hello, Ann!
"""


_USED = re.compile(r"\buse[\"']?:\s*[\"']?([A-Za-z_][A-Za-z0-9_]*)\.")
"""The part before the first dot in the name of a step."""


class ReadFile(NamedTuple):
    """A document that was read."""

    file: str
    text: str
    document: Document
    warnings: tuple[Problem, ...]


def read_file(file: Path, *, checks: bool = True, warns: bool = True) -> ReadFile:
    """The document in a file.

    Raises:
        click.ClickException: it has problems; all of them, with their lines.
    """
    from outlive._features.flows.library.reading import read_document
    from outlive.errors.document import FlowError

    text = _text_of(file)
    try:
        found = read_document(text, file=str(file), checks=checks)
    except FlowError as error:
        raise click.ClickException(str(error)) from None
    for warning in found.warnings if warns else ():
        click.echo(warning.shown(str(file)), err=True)
    return ReadFile(str(file), text, found.document, found.warnings)


def _text_of(file: Path) -> str:
    from outlive._features.flows.document.reading import BYTES_MAX

    try:
        return text_of(file, bytes_max=BYTES_MAX)
    except UnicodeDecodeError:
        raise click.ClickException(f"{file}: it is not UTF-8 text") from None
    except OSError as error:
        raise Mistake(f"{file} cannot be read: {error.strerror}") from None


def file_named(name: str) -> Path | None:
    """The file that a person means with NAME|FILE; None if it is the name of a flow of the store."""
    file = Path(name)
    return file if file.is_file() else None


def load_apps(apps: tuple[str, ...], *documents: Path | None) -> None:
    """Import the programs that define the steps of a flow.

    If none is named, the programs beside a document which is run: `use: shop.reserve` means `shop.py` there.
    """
    from outlive.cli.app import load

    for app in apps or [found for document in documents if document is not None for found in _beside(document)]:
        load(app)


def _beside(document: Path) -> Iterator[str]:
    """The files beside a document that are named by what it uses."""
    for name in dict.fromkeys(_USED.findall(_text_of(document))):
        file = document.parent / f"{name}.py"
        if file.is_file():
            yield str(file)


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--strict", is_flag=True, help="Take warnings for errors, and steps that no APP defines too.")
@app_option
@server_flag
@store_flag(help="Check with the steps that live workers of this store run.")
@json_option
def check(*, files: tuple[Path, ...], strict: bool, apps: tuple[str, ...], url: str | None, as_json: bool) -> None:
    """Check documents: their form, their references and types, and with --app also what their steps take.

    With --server or --store, steps that live workers run count too, remote ones among them. Nothing runs. All problems
    are reported at once, each with its line. Exit code 1 if there is one.
    """
    from outlive._features.flows.library.reading import read_document
    from outlive.errors.document import FlowError

    load_apps(apps)
    listed = None if url is None else ask(url, _listed)
    knows_steps = bool(apps) or (strict and listed is None)
    reports: list[dict[str, Any]] = []
    failed = 0
    for file in files:
        try:
            found = read_document(_text_of(file), file=str(file), knows_steps=knows_steps, listed=listed)
            problems = list(found.warnings)
        except FlowError as error:
            problems = list(error.problems)
        is_bad = any(strict or not problem.is_warning for problem in problems)
        failed += is_bad
        reports.append({"file": str(file), "ok": not is_bad, "problems": [_plain(problem) for problem in problems]})
        if not as_json:
            for problem in problems:
                click.echo(problem.shown(str(file)), err=True)
            if not is_bad:
                click.echo(f"{file}: ok")
    if as_json:
        print_json(reports)
    if failed:
        if not as_json:
            click.echo(f"{counted(failed, 'document')} of {len(files)} cannot run", err=True)
        sys.exit(1)


async def _listed(engine: Engine) -> Listed:
    from outlive._features.flows.document.known_names import Listed

    return Listed(await engine.workers.steps(), {it.name for it in await engine.workflows.list()})


def _plain(problem: Problem) -> dict[str, Any]:
    return {
        "code": problem.code,
        "message": problem.message,
        "path": list(problem.path),
        "line": problem.line,
        "column": problem.column,
        "suggestion": problem.suggestion,
        "is_warning": problem.is_warning,
    }


@click.command()
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@json_option
def schema(*, output: Path | None, as_json: bool) -> None:
    """Print the JSON Schema of documents, for editors."""
    import msgspec

    from outlive._features.flows.document.schema import flow_schema

    text = msgspec.json.format(msgspec.json.encode(flow_schema()), indent=2).decode() + "\n"
    if output is None:
        print_file(text)
    else:
        output.write_text(text, encoding="utf-8")
        say(f"{output} is written", {"file": str(output)}, as_json=as_json)


@click.command()
@click.argument("name")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="NAME.flow.yaml unless given.")
@click.option("--schema", "schema_file", default="flow.schema.json", show_default=True, help="Where editors find it.")
@json_option
def new(*, name: str, output: Path | None, schema_file: str, as_json: bool) -> None:
    """Write a first document, which runs as it is, and beside it the schema for editors."""
    import msgspec

    from outlive._features.flows.document.schema import flow_schema

    file = output or Path(f"{name}.flow.yaml")
    if file.exists():
        raise Mistake(f"{file} is there already; give another name, or --output")
    file.write_text(TEMPLATE.format(name=name, schema=schema_file), encoding="utf-8")
    beside = file.parent / schema_file
    if not beside.exists():
        text = msgspec.json.format(msgspec.json.encode(flow_schema()), indent=2)
        beside.write_bytes(text + b"\n")
    said = f"{file} is written; try `outlive flows test {file}` and `outlive flows run {file}`"
    say(said, {"file": str(file), "schema": str(beside)}, as_json=as_json)


@click.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@click.option(
    "--config",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Stepflow's configuration: the answers of its mock plugins become mocks of the tests.",
)
@json_option
def import_(*, file: Path, output: Path | None, config: Path | None, as_json: bool) -> None:
    """Carry a document of Stepflow or Flowbot over into a document of ours.

    A flow inside the document which is called by `eval` becomes a document of its own, beside the output. What a person
    has to do by hand is said on standard error, each with its line in FILE.
    """
    from outlive._features.flows.document.writing import as_yaml
    from outlive._features.flows.other_systems.import_document import import_document
    from outlive.errors.document import FlowError

    try:
        found = import_document(_text_of(file), str(file), config=None if config is None else _text_of(config))
    except FlowError as error:
        raise click.ClickException(str(error)) from None
    text = as_yaml(found.data)
    inner = {name: as_yaml(data) for name, data in found.inner.items()}
    files: dict[Path, str] = {}
    if output is not None:
        files = {output: text} | {output.with_name(f"{name}.yaml"): each for name, each in inner.items()}
        _check_free([each for each in files if each != output])
    for each, own in files.items():
        each.write_text(own, encoding="utf-8")
    if as_json:
        problems = [_plain(problem) for problem in found.problems]
        print_json({"document": found.data, "inner": found.inner, "problems": problems})
        return
    if output is None:
        print_file("---\n".join([text, *inner.values()]))
    else:
        written = " ".join(str(each) for each in files)
        click.echo(f"written: {written}; try `outlive flows check {written}`", err=True)
    for problem in found.problems:
        click.echo(problem.shown(str(file)), err=True)


def _check_free(files: list[Path]) -> None:
    """See that nothing is overwritten which was not named."""
    if taken := [each for each in files if each.exists()]:
        them = " ".join(str(each) for each in taken)
        raise click.ClickException(
            f"nothing was written: {them} would be overwritten; move it away, or write elsewhere"
        )
