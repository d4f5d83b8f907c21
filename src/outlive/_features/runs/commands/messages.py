"""`outlive signal` and `outlive ask`: what a person says to a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from outlive.cli import completing as complete
from outlive.cli.advice import as_typed
from outlive.cli.edge import REFUSED, Mistake, json_option, open_engine, place_option, print_json, run, say
from outlive.cli.edge import ask as ask_engine
from outlive.cli.starting import options_of, start_options
from outlive.cli.values import json_of, seconds_of, structs_in

if TYPE_CHECKING:
    from outlive.http.wire.runs import SignalTo

C = TypeVar("C", bound=Callable[..., Any])

value_argument = click.argument("value", default="null", metavar="[JSON]")
key_option = click.option("--key", help="The same key again, for this run and name, is the same message.")


def absent_options(command: C) -> C:
    """Add the options of the run that a message creates if there is none with the id."""
    start = click.option(
        "--start",
        metavar="WORKFLOW",
        shell_complete=complete.workflow_names,
        help="Create the run, of this workflow, if there is none.",
    )
    arguments = click.option("--input", "arguments", metavar="JSON", help="The arguments of a run that it creates.")
    lives_on = click.option(
        "--lives-on",
        is_flag=True,
        help="Create another run under the id if the run that has it has ended.",
    )
    return start(arguments(lives_on(start_options("headers")(command))))


def start_of(given: dict[str, Any]) -> dict[str, Any]:
    """The options of a message about the run that it creates, as they were given.

    Raises:
        Mistake: some are given, and no run to create.
    """
    options, workflow, arguments = options_of(given, ("headers",)), given["start"], given["arguments"]
    if workflow is None:
        if options or arguments is not None or given["lives_on"]:
            raise Mistake(
                "--input, --header and --lives-on are for the run that --start creates: give --start WORKFLOW too"
            )
        return {}
    if given["lives_on"]:
        options["on_conflict"] = "attach_open"
    return {"start": (workflow, None if arguments is None else json_of("--input", arguments)), **options}


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete.run_ids)
@click.argument("name")
@value_argument
@key_option
@absent_options
@place_option
@json_option
def signal(*, run_id: str, name: str, value: str, key: str | None, url: str, as_json: bool, **given: Any) -> None:
    """Send a signal to a run.

    It is durable when the command returns, and buffered until the run asks for it. JSON is what it carries; @FILE reads
    it from a file, - from standard input.

    For example: outlive signal cart-7 add '{"sku": "lamp"}' --start cart --input '{"user": "ann"}'
    """
    payload, start = json_of("JSON", value), start_of(given)
    ask_engine(url, lambda engine: engine.signal(run_id, name, payload, key=key, **start))
    say(f"signal {name} is sent to run {run_id}", {"id": run_id, "signal": name, "key": key}, as_json=as_json)


@click.command("signal-many")
@click.argument("signals", metavar="FILE")
@place_option
@json_option
def signal_many(*, signals: str, url: str, as_json: bool) -> None:
    """Send a signal for each line of FILE (- for standard input).

    A line is one signal as `POST /bulk/signal` takes it:

    {"run_id": "order-7", "name": "paid", "payload": 1200, "key": "evt_123"}

    A thousand lines are one commit. If a line cannot work, nothing of its thousand is sent, and the command ends. The
    same file with the same keys again sends nothing twice.

    Exit code 0: each signal was sent. 1: a line cannot work, or its run is not there, has ended or is full.
    """
    from outlive._kernel.client.signal_many import SIGNALS_MAX
    from outlive.http.wire.runs import SignalTo

    read = structs_in(signals, SignalTo)
    refused = run(_send_all(url, [read[at : at + SIGNALS_MAX] for at in range(0, len(read), SIGNALS_MAX)]))
    for line, why in refused.items():
        click.echo(f"line {line}: {why}", err=True)
    if as_json:
        print_json(
            [
                {"line": line, "id": it.run_id, "signal": it.name, "key": it.key, "refused": refused.get(line)}
                for line, it in read
            ]
        )
    else:
        click.echo(f"{len(read) - len(refused)} signals are sent")
    if refused:
        sys.exit(REFUSED)


async def _send_all(url: str, portions: list[list[tuple[int, SignalTo]]]) -> dict[int, str]:
    """Send them a thousand at a time: the refusals, by line."""
    from outlive._kernel.client.message_start import NamedStart
    from outlive.errors.run import SignalsRefusedError

    found: dict[int, str] = {}
    async with open_engine(url) as engine:
        for portion in portions:
            wanted: list[Any] = []
            for _, it in portion:
                one: dict[str, Any] = {"signal": (it.run_id, it.name, it.payload), "key": it.key}
                if it.start is not None:
                    start = NamedStart(it.start.workflow, it.start.arguments, it.start.version)
                    one |= {"start": start, "headers": it.start.headers, "on_conflict": it.start.on_conflict}
                wanted.append(one)
            try:
                await engine.signal_many(wanted)
            except SignalsRefusedError as error:
                found |= {portion[at][0]: as_typed(it) for at, it in error.refused.items()}
    return found


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete.run_ids)
@click.argument("name")
@value_argument
@key_option
@click.option("--timeout", default="1m", show_default=True, metavar="SPAN", help="How long to wait for the answer.")
@absent_options
@place_option
@json_option
def ask(
    *, run_id: str, name: str, value: str, key: str | None, timeout: str, url: str, as_json: bool, **given: Any
) -> None:
    """Ask a run something, and print its answer.

    For example: outlive ask cart-7 total --timeout 5s

    The answer is JSON. A question that is not answered in time stays with the run: the same --key again waits for the
    same answer.

    Exit code 0: it has answered. 1: it has refused the question, or has not answered in time.
    """
    body, seconds, start = json_of("JSON", value), seconds_of("--timeout", timeout), start_of(given)
    answer = ask_engine(url, lambda engine: engine.ask(run_id, name, body, key=key, timeout=seconds, **start))
    print_json({"id": run_id, "ask": name, "answer": answer} if as_json else answer)
