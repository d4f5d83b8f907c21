"""Observers get facts in order, without holding up the event loop, and the facts that they miss are counted."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from outlive._kernel.runtime.clock import SystemClock
from outlive._kernel.runtime.tree import observer_calls as queueing
from outlive._kernel.runtime.tree.observer_calls import HookCall, ObserverCalls
from outlive.telemetry import Counters
from tests.engine.support import in_time, turns_of_the_loop, until
from tests.interrupts import keyboard, press_ctrl_c


class Listener:
    """Notes what it hears; `wait` does so when the test lets it."""

    hook_timeout = 60.0

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.is_open = asyncio.Event()

    def note(self, fact: Any) -> None:
        """At once."""
        self.heard.append(fact)

    async def wait(self, fact: Any) -> None:
        """When it may."""
        await self.is_open.wait()
        self.heard.append(fact)

    def interrupt(self, fact: Any) -> None:
        """A person presses Ctrl-C just now."""
        press_ctrl_c()

    def exit(self, fact: Any) -> None:
        """A library wants to end the process."""
        raise KeyboardInterrupt

    def fail(self, fact: Any) -> None:
        """A bug of the user's."""
        raise ValueError(fact)


@pytest.fixture
async def counters() -> Counters:
    """Of one test."""
    return Counters()


@pytest.fixture
async def observer_calls(counters: Counters) -> ObserverCalls:
    """Of one test."""
    return ObserverCalls(clock=SystemClock(), counters=counters)


def tell(observer_calls: ObserverCalls, listener: Listener, hook: str, *facts: Any, run: str = "run") -> None:
    """Something has happened."""
    observer_calls.add(run, [HookCall((listener,), hook, fact) for fact in facts])


async def test_hooks_for_many_facts_are_called_in_order_and_in_more_than_one_turn(
    observer_calls: ObserverCalls,
) -> None:
    """Others have their turn in between; nothing is left out."""
    listener, count = Listener(), 2 * queueing.HOOKS_PER_TURN_MAX + 7
    tell(observer_calls, listener, "note", *range(count))
    assert [] == listener.heard
    await asyncio.sleep(0)
    assert queueing.HOOKS_PER_TURN_MAX == len(listener.heard)
    await turns_of_the_loop(3)
    assert list(range(count)) == listener.heard
    tell(observer_calls, listener, "note", "later")
    await turns_of_the_loop(2)
    assert "later" == listener.heard[-1]


async def test_slow_hook_delays_the_facts_of_its_own_run_only(observer_calls: ObserverCalls) -> None:
    """A slow hook delays the facts of its own run, and not those of another run of the same observer."""
    listener = Listener()
    tell(observer_calls, listener, "wait", "slow")
    tell(observer_calls, listener, "note", "behind")
    tell(observer_calls, listener, "note", "other", run="other")
    await turns_of_the_loop(3)
    assert ["other"] == listener.heard
    listener.is_open.set()
    await turns_of_the_loop(6)
    assert ["other", "slow", "behind"] == listener.heard


async def test_closing_calls_the_hooks_for_known_facts_and_drops_later_ones(
    observer_calls: ObserverCalls, counters: Counters
) -> None:
    """Closing calls the hooks for the facts that are there, and drops and counts the facts that come later."""
    listener = Listener()
    tell(observer_calls, listener, "note", 1, 2)
    await in_time(observer_calls.close(timeout_seconds=20))
    assert [1, 2] == listener.heard
    assert 0 == counters.hooks_dropped
    observer_calls.add("run", [HookCall((listener, Listener()), "note", 3), HookCall((listener,), "note", 4)])
    await turns_of_the_loop(3)
    assert [1, 2] == listener.heard
    assert 3 == counters.hooks_dropped


async def test_closing_does_not_wait_for_ever(
    observer_calls: ObserverCalls, counters: Counters, caplog: pytest.LogCaptureFixture
) -> None:
    """The hook that hangs is cancelled, what is behind it is dropped, and the log says for how many runs."""
    listener = Listener()
    tell(observer_calls, listener, "wait", 1, 2, 3)
    tell(observer_calls, listener, "wait", 1, run="other")
    await turns_of_the_loop(2)
    with caplog.at_level(logging.WARNING, "outlive"):
        await in_time(observer_calls.close(timeout_seconds=0.02))
    assert [] == listener.heard
    assert 4 == counters.hooks_dropped
    assert 0 == counters.hooks_failed
    assert "before all hooks of observers of 2 runs were called" in caplog.text
    assert not [task for task in asyncio.all_tasks() if task.get_name() == "outlive-observer"]


async def test_observer_that_is_too_far_behind_is_named_once(
    observer_calls: ObserverCalls, counters: Counters, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An observer gets the facts that fit into its queue; the rest are counted, and the log names it once."""
    monkeypatch.setattr(queueing, "QUEUE_MAX", 2)
    listener = Listener()
    with caplog.at_level(logging.ERROR, "outlive"):
        tell(observer_calls, listener, "note", *range(5))
    await turns_of_the_loop(2)
    assert [0, 1] == listener.heard
    assert 3 == counters.hooks_dropped
    assert 1 == caplog.text.count("observer Listener is 2 facts behind for run run; more are discarded")


async def test_hook_that_fails_does_not_stop_the_next(observer_calls: ObserverCalls, counters: Counters) -> None:
    """A hook that raises is counted, and the hooks behind it are called."""
    listener = Listener()
    tell(observer_calls, listener, "fail", 1, 2)
    tell(observer_calls, listener, "note", 3)
    await turns_of_the_loop(2)
    assert [3] == listener.heard
    assert 2 == counters.hooks_failed


async def test_hook_that_takes_too_long_is_cut_off(observer_calls: ObserverCalls, counters: Counters) -> None:
    """A hook that exceeds the timeout of its observer is cut off, and the next one is called."""
    listener = Listener()
    listener.hook_timeout = 0.005
    tell(observer_calls, listener, "wait", 1)
    tell(observer_calls, listener, "note", 2)

    async def has_heard() -> bool:
        return bool(listener.heard)

    await until(has_heard)
    assert [2] == listener.heard
    assert 1 == counters.hooks_failed


async def test_interrupt_in_a_hook_is_not_swallowed(observer_calls: ObserverCalls, counters: Counters) -> None:
    """The person at the keyboard wants the process to end: it goes to the caller that runs the loop."""
    loop, called = asyncio.get_running_loop(), []
    call_soon = loop.call_soon
    loop.call_soon = lambda callback, *args, **options: called.append(callback)  # type: ignore[assignment, method-assign]
    try:
        tell(observer_calls, Listener(), "interrupt", 1)
    finally:
        loop.call_soon = call_soon  # type: ignore[method-assign]
    (go_on,) = called
    with keyboard(), pytest.raises(KeyboardInterrupt):
        go_on()
    assert 0 == counters.hooks_failed


async def test_interrupt_that_no_signal_caused_is_the_failure_of_its_hook(
    observer_calls: ObserverCalls, counters: Counters
) -> None:
    """No person wants the process to end."""
    listener = Listener()
    tell(observer_calls, listener, "exit", 1)
    tell(observer_calls, listener, "note", 2)

    async def has_heard() -> bool:
        return bool(listener.heard)

    await until(has_heard)
    assert 1 == counters.hooks_failed
