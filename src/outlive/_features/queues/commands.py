"""`outlive queues`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from outlive.cli import completing as complete
from outlive.cli.edge import (
    Group,
    Mistake,
    ask,
    by_option,
    json_option,
    person,
    place_option,
    print_json,
    print_table,
    say,
)
from outlive.cli.paint import span
from outlive.cli.values import seconds_of

if TYPE_CHECKING:
    from outlive._kernel.model.limit import Tier
    from outlive._kernel.values.queue import QueueState

NONE = "none"
WEIGHTS_SHOWN_MAX = 3


@click.group(cls=Group)
def queues() -> None:
    """Show how full queues are, change their limits, pause and resume them."""


@queues.command("list")
@place_option
@json_option
def list_queues(*, url: str, as_json: bool) -> None:
    """Show every queue: how many runs wait, how many are under way, what it allows."""
    found = ask(url, lambda engine: engine.queues.list())
    if as_json:
        print_json(found)
        return
    if not found:
        click.echo("this store has no queues")
        return
    rows = [
        [
            info.name,
            info.paused or "open",
            str(info.in_line),
            f"{info.running} ({info.slots} slots)" if info.slots.count > info.running.count else str(info.running),
            str(info.later),
            "-" if info.waiting is None else span(info.waiting.total_seconds()),
            _limits(info),
        ]
        for info in found
    ]
    print_table(["queue", "state", "in line", "running", "later", "waits", "limits"], rows)


@queues.command()
@place_option
@click.argument("name", shell_complete=complete.queue_names)
@by_option
@click.option("--reason", default="", help="Why.")
@json_option
def pause(*, url: str, name: str, by: str, reason: str, as_json: bool) -> None:
    """Give no more slots; what runs goes on."""
    by = person(url, by)
    ask(url, lambda engine: engine.queues.pause(name, by=by, reason=reason))
    _say(url, name, f"queue {name} is paused", as_json=as_json)


@queues.command()
@place_option
@click.argument("name", shell_complete=complete.queue_names)
@json_option
def resume(*, url: str, name: str, as_json: bool) -> None:
    """Give slots again."""
    ask(url, lambda engine: engine.queues.resume(name))
    _say(url, name, f"queue {name} is open", as_json=as_json)


@queues.command()
@place_option
@click.argument("name", shell_complete=complete.queue_names)
@by_option
@json_option
def drain(*, url: str, name: str, by: str, as_json: bool) -> None:
    """Pause a queue, and wait until no run of it is under way."""
    by = person(url, by)
    ask(url, lambda engine: engine.queues.drain(name, by=by))
    _say(url, name, f"queue {name} is paused, and no run of it is under way", as_json=as_json)


@queues.command("set")
@place_option
@click.argument("name", shell_complete=complete.queue_names)
@click.option("--concurrency", metavar="N", help="Runs under way at once in all workers; none for no limit.")
@click.option("--per-worker", metavar="N", help="Those of one worker; none for no limit.")
@click.option("--per-key", metavar="N", help="Those with the same key; none for no limit.")
@click.option(
    "--rate",
    "rates",
    multiple=True,
    metavar="RATE",
    help=(
        "How often runs may begin: 10 a second, 10:50 with 50 at once, 500/1h in each hour, '5 in any 2s'; again for "
        "several; none."
    ),
)
@click.option(
    "--weight",
    "weights",
    multiple=True,
    metavar="KEY=N",
    help="How many turns a key has when others have one; again for several keys; none for one turn each.",
)
@click.option("--reset", is_flag=True, help="Let the limits count again that code declares.")
@json_option
def set_limits(
    *,
    url: str,
    name: str,
    rates: tuple[str, ...],
    weights: tuple[str, ...],
    reset: bool,
    as_json: bool,
    **limits: str | None,
) -> None:
    """Change limits of a queue, for all workers."""
    wanted: dict[str, Any] = {limit: _number(limit, value) for limit, value in limits.items() if value is not None}
    if rates:
        wanted["rate"] = None if rates == (NONE,) else [_tier(text) for text in rates]
    if weights:
        wanted["weights"] = None if weights == (NONE,) else dict(_weight(text) for text in weights)
    if reset:
        ask(url, lambda engine: engine.queues.reset(name))
    elif not wanted:
        raise Mistake("give --concurrency, --per-worker, --per-key, --rate, --weight or --reset")
    if wanted:
        ask(url, lambda engine: engine.queues.set(name, **wanted))
    info = ask(url, lambda engine: engine.queues.stats(name))
    say(f"queue {name}: {_limits(info)}", info, as_json=as_json)


def _say(url: str, name: str, text: str, *, as_json: bool) -> None:
    """The line for people, or the queue as it is now for programs."""
    say(text, ask(url, lambda engine: engine.queues.stats(name)) if as_json else None, as_json=as_json)


def _number(limit: str, value: str) -> int | None:
    if value == NONE:
        return None
    if not value.isdigit() or not int(value):
        raise Mistake(f"--{limit.replace('_', '-')} is a whole number from 1 on, or none; not {value!r}")
    return int(value)


def _tier(text: str) -> Tier:
    """How often runs may begin, as a person writes it: `10`, `10:50`, `500/1h` or `5 in any 2s`."""
    from outlive._kernel.model.limit import FixedWindow, SlidingWindow, TokenBucket
    from outlive.errors import OutliveError

    limit, is_sliding, period = text.partition(" in any ")
    count, has_window, span = text.partition("/")
    rate, has_burst, burst = text.partition(":")
    try:
        if is_sliding:
            return SlidingWindow(int(limit), seconds_of("--rate", period.strip()))
        if has_window:
            seconds = seconds_of("--rate", span if span[:1].isdigit() else f"1{span}")
            return FixedWindow(int(count), seconds)
        return TokenBucket(float(rate), int(burst) if has_burst else 0)
    except (ValueError, OutliveError, Mistake) as error:
        wanted = (
            "10 for ten a second, 10:50 with up to 50 at once, 500/1h for 500 in each hour, '5 in any 2s' for 5 in any "
            "two seconds, or none"
        )
        raise Mistake(f"--rate {text}: write {wanted}") from error


def _weight(text: str) -> tuple[str, float]:
    key, _, number = text.rpartition("=")
    try:
        return key, float(number)
    except ValueError:
        raise Mistake(f"--weight {text}: write a key and its turns, for example customer-7=3, or none") from None


def _limits(info: QueueState) -> str:
    limits = info.limits
    shown = {"concurrency": limits.concurrency, "per worker": limits.per_worker, "per key": limits.per_key}
    parts = [f"{name} {value:,}" for name, value in shown.items() if value is not None]
    parts += [tier.tier.label for tier in limits.rate]
    parts += [f"weight of {key} {weight:g}" for key, weight in sorted(limits.weights.items())[:WEIGHTS_SHOWN_MAX]]
    parts += [f"weights of {more:,} more" for more in [len(limits.weights) - WEIGHTS_SHOWN_MAX] if more > 0]
    return ", ".join(parts) or NONE
