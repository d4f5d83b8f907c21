"""`check_deploy` says what new code would do to the runs that are open, and changes nothing.

Every check here is made twice, on the store and through a server of it, and both must say the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

import outlive
from outlive._kernel.define.registry import REGISTRY
from outlive.errors import StoreUnavailableError
from outlive.errors.store import SchemaTooOldError
from outlive.testing import TestEngine
from outlive.testing import check_deploy as check_place
from outlive.testing.deploy import DeployReport, Kind
from outlive.testing.deploy.report import shape
from tests.cli.serving import served_store

Code = Callable[..., Any]


def check_deploy(url: str, **options: Any) -> DeployReport:
    """What is found on a store; the same is found through a server."""
    report = check_place(url, **options)
    with served_store(url) as address:
        served = check_place(address, **options)
    assert {**served.plain(), "seconds": 0} == {**report.plain(), "seconds": 0}
    return report


@contextlib.contextmanager
def deployed(**codes: Code) -> Iterator[dict[str, Any]]:
    """These functions are the workflows of this process, and it has no others of theirs afterwards."""
    with REGISTRY.forgetting():
        yield {name: outlive.workflow(name=f"deploy.{name}")(code) for name, code in codes.items()}


async def leave_open(url: str, codes: dict[str, Code], *, runs: int = 1) -> None:
    """Runs of each, as far as they come by themselves."""
    with deployed(**codes) as workflows:
        async with TestEngine(url) as engine:
            for name, workflow in workflows.items():
                for number in range(runs):
                    await engine.start(workflow, f"o-{number}", id=f"{name}-{number}")
            await engine.settle()


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file for runs."""
    return f"sqlite:{tmp_path / 'runs.db'}"


@outlive.step(name="deploy.reserve")
async def reserve(order: str) -> str:
    """A step of both codes."""
    return f"{order} reserved"


@outlive.step(name="deploy.check")
async def check(order: str) -> str:
    """A step of the new code."""
    raise AssertionError("no step is called")


async def checkout(order: str) -> str:
    """The code of the runs."""
    await reserve(order)
    return await outlive.wait_for_signal("paid", str)


async def checkout_checked(order: str) -> str:
    """Asks for another step first."""
    await check(order)
    await reserve(order)
    return await outlive.wait_for_signal("paid", str)


async def test_the_same_code_goes_on(url: str) -> None:
    """Whatever a run waits for, and while workers use the store."""

    with deployed(story=story) as workflows:
        async with TestEngine(url) as engine:
            for name in ("a", "b"):
                await engine.start(workflows["story"], name, id=name)
            await engine.settle()
            await engine.pause("b")
            await engine.start(workflows["story"], "c", id="c", delay=60)

            report = check_deploy(url)

            await engine.signal("a", "paid", "now")
            assert await engine.get("a").result() == "now"
    assert report.is_fine
    assert (report.open, report.checked, report.groups) == (3, 3, [])
    assert str(report) == "3 open runs replayed: all go on with this code"


async def story(order: str) -> str:
    """A bit of everything."""
    await asyncio.gather(reserve(order), reserve(order))
    outlive.publish(stage="reserved")
    return await asyncio.ensure_future(outlive.wait_for_signal("paid", str))


async def test_runs_that_diverge_are_one_group(url: str) -> None:
    """With what the journal has, what the code asks for, and some of them as examples."""
    await leave_open(url, {"checkout": checkout}, runs=5)

    with deployed(checkout=checkout_checked):
        report = check_deploy(url)

    assert (report.is_fine, report.harmed) == (False, 5)
    (group,) = report.groups
    assert (group.kind, group.definition, group.count) == (Kind.DIVERGES, "deploy.checkout@1", 5)
    assert (group.journal, group.code) == ("step deploy.reserve succeeded", "waits for step deploy.check")
    assert (group.first_event, group.last_event) == (1, 1)
    assert len(group.examples) == 3
    assert str(report).startswith(
        "5 open runs replayed: 5 would not go on with this code\n\n"
        "deploy.checkout@1: 5 runs would be parked: the code asks for something else than the journal has\n"
        "  - journal: step deploy.reserve succeeded\n"
        "  + code:    waits for step deploy.check\n"
        "  at event 1; for example checkout-0, checkout-1, checkout-2\n"
    )
    assert report.plain()["groups"][0]["kind"] == "diverges"


async def other_arguments(order: str) -> str:
    """Calls the step with another value."""
    await reserve(order.upper())
    return await outlive.wait_for_signal("paid", str)


async def test_other_arguments_are_listed_and_are_fine(url: str) -> None:
    """A call with other arguments is listed and harms no run, because the journal counts."""
    await leave_open(url, {"checkout": checkout})

    with deployed(checkout=other_arguments):
        report = check_deploy(url)

    assert report.is_fine
    (group,) = report.groups
    assert (group.kind, group.what) == (Kind.ARGUMENTS, "calls deploy.reserve with other arguments")


async def test_a_workflow_that_is_gone_is_reported(url: str) -> None:
    """With the versions that the code has; and a child of a run too."""
    await leave_open(url, {"checkout": checkout})

    with REGISTRY.forgetting():
        outlive.workflow(name="deploy.checkout", version=2)(checkout)
        report = check_deploy(url)

    (group,) = report.groups
    assert group.kind is Kind.UNDEFINED
    assert group.what == "this code does not define deploy.checkout@1; it has deploy.checkout@2"


async def takes_numbers(order: list[int]) -> str:
    """Its input has another type."""
    return await outlive.wait_for_signal("paid", str)


async def waits_first(order: str) -> str:
    """Waits for one signal and has got another."""
    return await outlive.wait_for_signal("first", str)


async def takes_both(order: str) -> str:
    """Takes the signal that has come, as another type."""
    await outlive.wait_for_signal("paid", list[int])
    return await outlive.wait_for_signal("first", str)


async def test_values_that_cannot_be_read_are_reported(url: str) -> None:
    """Inputs and signals of open runs that the new code cannot read are reported."""
    with deployed(typed=checkout, early=waits_first) as workflows:
        async with TestEngine(url) as engine:
            await engine.start(workflows["typed"], "o-1", id="typed")
            await engine.start(workflows["early"], "o-1", id="early")
            await engine.signal("early", "paid", "now")
            await engine.settle()

    with deployed(typed=takes_numbers, early=takes_both):
        report = check_deploy(url)

    assert report.harmed == 2
    found = {group.examples[0]: group for group in report.groups}
    assert {group.kind for group in report.groups} == {Kind.UNREADABLE}
    assert "cannot be read as list[int]: Expected `array`, got `str`" in found["typed"].what
    assert found["early"].what.startswith("signal 'paid' cannot be read as list[int]")


async def marked(order: str) -> str:
    """Has a change."""
    if outlive.patched("new-way"):
        await check_well(order)
    return await outlive.wait_for_signal("paid", str)


@outlive.step(name="deploy.check_well")
async def check_well(order: str) -> str:
    """A step behind the change."""
    return order


async def unmarked(order: str) -> str:
    """Is older than the change."""
    return await outlive.wait_for_signal("paid", str)


async def test_a_change_that_the_code_lacks_is_reported(url: str) -> None:
    """Such a run would wait for workers that have it."""
    await leave_open(url, {"marked": marked})

    with deployed(marked=unmarked):
        report = check_deploy(url)

    (group,) = report.groups
    assert group.kind is Kind.DECLINED
    assert "the change 'new-way'" in group.what


async def fails(order: str) -> str:
    """Has a mistake."""
    await reserve(order)
    raise ValueError(f"no way to pay {order}")


async def ends(order: str) -> str:
    """Waits no longer."""
    return await reserve(order)


async def test_code_that_ends_where_the_run_waits_is_reported(url: str) -> None:
    """A failure is harm, whatever its message; a good end is only listed."""
    await leave_open(url, {"one": checkout, "two": checkout}, runs=3)

    with deployed(one=fails, two=ends):
        report = check_deploy(url)

    failing, ending = report.groups
    assert report.harmed == 3
    assert (failing.kind, failing.count) == (Kind.FAILS, 3)
    assert failing.what.startswith("failed: ValueError: no way to pay o-")
    assert "test_deploy.py" in failing.what
    assert (ending.kind, ending.count, ending.what) == (Kind.ENDS, 3, "succeeded")


async def test_code_that_would_stop_for_another_reason_is_reported(url: str) -> None:
    """With that reason."""
    await leave_open(url, {"checkout": checkout})

    with deployed(checkout=waits_for_nothing):
        report = check_deploy(url)

    (group,) = report.groups
    assert group.kind is Kind.STOPS
    assert "no journal event can bring" in group.what


async def waits_for_nothing(order: str) -> str:
    """Waits for what cannot come."""
    await reserve(order)
    await asyncio.Event().wait()
    return ""


async def test_a_run_that_is_parked_for_this_already_is_not_harmed(url: str) -> None:
    """A run that is parked for the same difference already is not counted as harmed by a deploy."""
    await leave_open(url, {"checkout": checkout})
    with deployed(checkout=checkout_checked):
        async with TestEngine(url) as engine:
            await engine.signal("checkout-0", "paid", "now")
            await engine.settle()

        report = check_deploy(url)

    assert report.is_fine
    (group,) = report.groups
    assert (group.kind, group.count, group.known) == (Kind.DIVERGES, 1, 1)
    assert "1 of them is parked for this already" in str(report)
    with deployed(checkout=checkout):
        assert not check_deploy(url).groups


async def test_a_damaged_journal_is_reported(url: str, tmp_path: Path) -> None:
    """The other runs are judged all the same."""
    await leave_open(url, {"checkout": checkout}, runs=2)
    connection = apsw.Connection(str(tmp_path / "runs.db"))
    connection.execute(
        "UPDATE outlive_events SET crc = crc + 1 WHERE seq = 1 AND journal ="
        " (SELECT journal FROM outlive_runs WHERE id = 'checkout-0')"
    )
    connection.close()

    with deployed(checkout=checkout_checked):
        report = check_deploy(url)

    assert [(group.kind, group.count) for group in report.groups] == [(Kind.DIVERGES, 1), (Kind.DAMAGED, 1)]


async def test_some_of_the_runs_can_be_looked_at(url: str) -> None:
    """The oldest ones, those of one workflow, or some of each."""
    await leave_open(url, {"one": checkout, "two": checkout}, runs=4)

    with deployed(one=checkout_checked, two=checkout):
        limited = check_deploy(url, limit=3)
        of_one = check_deploy(url, workflow="deploy.two")
        sample = check_deploy(url, sample=2)
        again = check_deploy(url, sample=2)

    assert (limited.open, limited.checked, limited.harmed) == (8, 3, 3)
    assert (of_one.open, of_one.checked, of_one.harmed) == (4, 4, 0)
    assert (sample.open, sample.checked, sample.harmed) == (8, 4, 2)
    assert sample.groups[0].examples == again.groups[0].examples
    assert str(sample).startswith("4 of 8 open runs replayed: 2 would not go on")


async def test_given_workflows_take_the_place_of_those_of_the_process(url: str) -> None:
    """Workflows that are given to `check_deploy` take the place of those of the process."""
    await leave_open(url, {"checkout": checkout})
    with deployed(checkout=checkout_checked) as new:
        pass

    with deployed(checkout=checkout):
        assert check_deploy(url).is_fine
        assert not check_deploy(url, workflows=[new["checkout"]]).is_fine


async def test_published_flows_are_replayed_with_their_documents(url: str) -> None:
    """A flow whose step the code has lost is reported, with the step; a document stays as it is."""
    text = (
        "name: deploy_flow\nsteps:\n"
        "  one: { use: deploy.mine, must_run: true, with: { order: a } }\n"
        "  two: { use: wait_for_signal, must_run: true, after: [one], with: { name: paid } }\n"
    )
    with REGISTRY.forgetting():
        outlive.step(name="deploy.mine")(mine)
        async with TestEngine(url) as engine:
            await engine.flows.apply(text)
            await engine.flows.start("deploy_flow", id="flow-1")
            await engine.settle()
        assert check_deploy(url).is_fine

    report = check_deploy(url)

    (group,) = report.groups
    assert group.kind is Kind.UNDEFINED
    assert "needs deploy.mine, which this code does not define" in group.what


async def mine(order: str) -> str:
    """A step of a flow."""
    return order


def test_no_file_is_made(url: str) -> None:
    """A URL with a mistake in it is not an empty store."""
    with pytest.raises(StoreUnavailableError, match="no such file"):
        check_deploy(url)


def test_a_store_of_an_earlier_release_is_left_as_it_is(tmp_path: Path) -> None:
    """Its workers may be at work: the first engine of this release migrates it."""
    path = tmp_path / "empty.db"
    path.touch()

    with pytest.raises(SchemaTooOldError):
        check_deploy(f"sqlite:{path}")

    assert not path.stat().st_size


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("step fetch#3 succeeded", "step fetch#12 succeeded"),
        ("waits for step 3.1/resize, step 3.2/resize", "waits for step 2.7/resize"),
        ("detached run order-17-mail was started", "detached run order-9-mail was started"),
        ("run 3 ended as failed", "run 12 ended as failed"),
        ("waits for step a, step b, and 3 more", "waits for step a, step b, and 9 more"),
    ],
)
def test_ids_and_counts_do_not_separate_groups(one: str, other: str) -> None:
    """Ids, tasks and counts of calls, which differ from run to run, do not separate groups."""
    assert shape(one) == shape(other)


def test_names_separate_groups() -> None:
    """Runs that differ in the name of a step are separate groups, even if the names differ in a last digit only."""
    assert shape("step fetch2 succeeded") != shape("step fetch3 succeeded")
