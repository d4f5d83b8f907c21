"""`outlive doctor`."""

from __future__ import annotations

import sys

import click

from outlive.cli.edge import REFUSED, counted, json_option, print_json, run


@click.command()
@click.option("--store", "url", metavar="URL", help="sqlite:orders.db or postgresql://user@host/database.")
@click.option("--namespace", metavar="NAME", help="The tenant whose runs these are.")
@json_option
def doctor(*, url: str | None, namespace: str | None, as_json: bool) -> None:
    """Look for what is wrong: versions, settings, the store, and what stands still.

    Each line says `ok`, `warning` or `problem`, and what to do. Nothing is written: no file is made, no schema is
    migrated, no run is moved. Without --store the store of the configuration is looked at.

    Exit code 0: no problem. 1: there is one. 2: the command is wrong.
    """
    from outlive._kernel.store.diagnosis import Level
    from outlive.engine.diagnosis import diagnose

    found = run(diagnose(url, namespace=namespace))
    problems = [each for each in found if each.level is Level.PROBLEM]
    warnings = [each for each in found if each.level is Level.WARNING]
    if as_json:
        listed = [each._asdict() | {"level": each.level.value, "advice": each.advice or None} for each in found]
        print_json({"findings": listed, "problems": len(problems), "warnings": len(warnings)})
    else:
        width = max(len(each.check) for each in found)
        for each in found:
            click.echo(f"{each.level.value:8} {each.check:{width}}  {each.said}")
            if each.advice:
                click.echo(f"{'':8} {'':{width}}  -> {each.advice}")
        click.echo(f"{counted(len(problems), 'problem')}, {counted(len(warnings), 'warning')}")
    sys.exit(REFUSED if problems else 0)
