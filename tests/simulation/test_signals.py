"""A signal to the simulator ends the simulator, and is not a fault of a simulated process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import Any

import pytest

from proof.simulation import simulate
from proof.simulation.replacing import replaced
from proof.simulation.weather import Weather

SEED = 47


class OverError(BaseException):
    """What the handler of the signal raises, as the limit of time of a test does."""


@pytest.fixture
def handler() -> Iterator[Any]:
    """One that raises, for a signal that no other test sends."""

    def handle(*_: object) -> None:
        raise OverError

    former = signal.signal(signal.SIGUSR1, handle)
    yield handle
    signal.signal(signal.SIGUSR1, former)


@pytest.mark.parametrize("verb", ["read_stream", "claim_runs", "commit", "find_run", "register_worker"])
def test_a_signal_in_a_simulated_process_ends_the_simulation(verb: str, handler: Any) -> None:
    """asyncio would take it for the end of a task, and the story would have a user who is never answered."""
    trip = Weather.trip

    def interrupted_trip(self: Weather, name: str, asked: str, **options: Any) -> Any:
        if asked == verb:
            signal.raise_signal(signal.SIGUSR1)
        return trip(self, name, asked, **options)

    with replaced(Weather, "trip", interrupted_trip), pytest.raises(OverError):
        simulate(SEED)

    assert signal.getsignal(signal.SIGUSR1) is handler


def test_a_signal_whose_handler_returns_changes_nothing() -> None:
    """A story is the same, whatever signals its process gets meanwhile."""
    heard = []
    trip = Weather.trip

    def noting_trip(self: Weather, *what: Any, **options: Any) -> Any:
        signal.raise_signal(signal.SIGUSR1)
        return trip(self, *what, **options)

    former = signal.signal(signal.SIGUSR1, lambda *_: heard.append(1))
    try:
        with replaced(Weather, "trip", noting_trip):
            disturbed = simulate(SEED)
    finally:
        signal.signal(signal.SIGUSR1, former)

    assert simulate(SEED).trace == disturbed.trace
    assert heard
