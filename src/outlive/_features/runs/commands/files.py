"""`outlive runs export|import`: runs as files, for another store and for `outlive.testing.replay`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import (
    Mistake,
    ask,
    counted,
    json_option,
    new_engine,
    open_engine,
    print_file,
    print_json,
    redacted,
    run,
    say,
    store_option,
)
from outlive.cli.filters import filter_options, filters_of
from outlive.cli.values import standard_input, text_of

_UNSAFE = re.compile(rb"[^A-Za-z0-9._-]")


@click.command()
@click.argument("run_ids", nargs=-1, metavar="[ID]...", shell_complete=complete.run_ids)
@filter_options
@click.option("--limit", type=click.IntRange(1, 1_000), default=100, show_default=True, help="At most so many.")
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write it to this file.")
@click.option(
    "--dir", "folder", type=click.Path(file_okay=False, path_type=Path), help="One file for each run in here."
)
@click.option("--unredacted", is_flag=True, help="Write what `redact` hides into the file too, which import needs.")
@store_option
@json_option
def export(
    *,
    run_ids: tuple[str, ...],
    limit: int,
    output: Path | None,
    folder: Path | None,
    unredacted: bool,
    url: str,
    as_json: bool,
    **filters: Any,
) -> None:
    """Write runs with their trees as lines of JSON: one to standard output or a file, several into a folder.

    A file holds everything, so that the run can go on elsewhere. Where the configuration hides fields (`redact`), that
    has to be asked for: --unredacted.
    """
    hidden = redacted()
    if hidden and not unredacted:
        raise Mistake(
            f"the file would hold what is hidden elsewhere ({', '.join(hidden)}); say --unredacted to write it, or use "
            "`outlive runs show --json`, which hides it"
        )
    wanted = filters_of(filters)
    if bool(run_ids) == bool(wanted):
        raise Mistake("name runs by their ids, or choose them by filters, for example --workflow order")
    if folder is None and (wanted or len(run_ids) > 1):
        raise Mistake("several runs are several files: say --dir FOLDER")
    if folder is None:
        text = ask(url, lambda engine: engine.export(run_ids[0]))
        if output is None:
            print_file(text)
        else:
            _write(output, text)
            said = f"{output} is written"
            say(said, {"runs": [{"id": run_ids[0], "file": str(output)}]}, as_json=as_json)
        return
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    found = run(_export(url, list(run_ids), wanted, limit, folder))
    if as_json:
        print_json({"runs": found})
    else:
        for each in found:
            click.echo(each["file"])
        click.echo(f"{counted(len(found), 'run')} exported", err=True)


async def _export(
    url: str, run_ids: list[str], wanted: dict[str, Any], limit: int, folder: Path
) -> list[dict[str, str]]:
    found = []
    async with open_engine(url) as engine:
        if wanted:
            page = await engine.list(**wanted, roots_only=True, limit=limit)
            run_ids = [each.id for each in page]
        for run_id in run_ids:
            file = folder / f"{_file_name(run_id)}.jsonl"
            _write(file, await engine.export(run_id))
            found.append({"id": run_id, "file": str(file)})
    return found


def _file_name(run_id: str) -> str:
    """The id as the name of a file, with other bytes as in a URL: two ids never have the same name."""
    return _UNSAFE.sub(lambda match: b"%%%02X" % match[0][0], run_id.encode()).decode()


def _write(file: Path, text: str) -> None:
    from outlive._platform import write_private

    write_private(file, text.encode())


@click.command("import")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option("--id", "new_id", help="Another id for the run; its own unless given.")
@store_option
@json_option
def import_(*, files: tuple[str, ...], new_id: str | None, url: str, as_json: bool) -> None:
    """Bring runs here that `runs export` took out of another store; `-` is standard input.

    A run that has not ended goes on here: cancel it in the other store, or both of them call the steps that are left.
    """
    if new_id is not None and len(files) > 1:
        raise Mistake("--id is for one run: give one FILE")
    texts = [(name, _read(name)) for name in files]

    found = run(_import(url, texts, new_id, says=not as_json))
    if as_json:
        print_json({"runs": [{"id": each} for each in found]})


async def _import(url: str, texts: list[tuple[str, str]], new_id: str | None, *, says: bool) -> list[str]:
    from outlive.errors import OutliveError

    found: list[str] = []
    async with new_engine(url) as engine:
        for name, text in texts:
            try:
                found.append((await engine.import_run(text, id=new_id)).id)
            except OutliveError as error:
                raise click.ClickException(f"{name}: {as_typed(error)}") from error
            if says:
                click.echo(f"run {found[-1]} imported")
    return found


def _read(name: str) -> str:
    try:
        return standard_input().read() if name == "-" else text_of(Path(name))
    except OSError as error:
        raise Mistake(f"{name} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Mistake(f"{name} is not text, and so not an exported run") from None
