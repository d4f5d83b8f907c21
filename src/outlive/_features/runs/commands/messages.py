"""`outlive signal` and `outlive ask`: what a person says to a run."""

from __future__ import annotations

import click

from outlive.cli import completing as complete
from outlive.cli.edge import ask as ask_engine
from outlive.cli.edge import json_option, place_option, print_json, say
from outlive.cli.values import json_of, seconds_of

value_argument = click.argument("value", default="null", metavar="[JSON]")
key_option = click.option("--key", help="The same key again, for this run and name, is the same message.")


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete.run_ids)
@click.argument("name")
@value_argument
@key_option
@place_option
@json_option
def signal(*, run_id: str, name: str, value: str, key: str | None, url: str, as_json: bool) -> None:
    """Send a signal to a run.

    It is durable when the command returns, and buffered until the run asks for it. JSON is what it carries; @FILE reads
    it from a file, - from standard input.
    """
    payload = json_of("JSON", value)
    ask_engine(url, lambda engine: engine.signal(run_id, name, payload, key=key))
    say(f"signal {name} is sent to run {run_id}", {"id": run_id, "signal": name, "key": key}, as_json=as_json)


@click.command()
@click.argument("run_id", metavar="RUN", shell_complete=complete.run_ids)
@click.argument("name")
@value_argument
@key_option
@click.option("--timeout", default="1m", show_default=True, metavar="SPAN", help="How long to wait for the answer.")
@place_option
@json_option
def ask(*, run_id: str, name: str, value: str, key: str | None, timeout: str, url: str, as_json: bool) -> None:
    """Ask a run something, and print its answer.

    The answer is JSON. A question that is not answered in time stays with the run: the same --key again waits for the
    same answer.

    Exit code 0: it has answered. 1: it has refused the question, or has not answered in time.
    """
    body, seconds = json_of("JSON", value), seconds_of("--timeout", timeout)
    answer = ask_engine(url, lambda engine: engine.ask(run_id, name, body, key=key, timeout=seconds))
    print_json({"id": run_id, "ask": name, "answer": answer} if as_json else answer)
