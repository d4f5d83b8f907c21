"""What is wrong with a machine is said before anything runs, and how it looks."""

from __future__ import annotations

import enum
from typing import Any, Literal
from xml.etree import ElementTree

import pytest

import outlive
from outlive._features.machines.joins import wanted
from outlive.errors import DefinitionError
from outlive.errors.program import DuplicateDefinitionError, MachineError
from outlive.machine import All, PartialTimeout, Percentage, Quorum
from outlive.testing import TestEngine
from tests.engine.support import Place, parks, registry_of


class S(enum.Enum):
    """Some states."""

    BEGIN = "begin"
    MIDDLE = "middle"
    LOOP = "loop"
    END = "end"


Machine = outlive.Machine[S, None]


def machine(name: str = "plain", **options: Any) -> Machine:
    """A machine that begins and may end."""
    given: dict[str, Any] = {"start": S.BEGIN, "exits": [S.END]} | options
    made: Machine = outlive.Machine(f"checks.{name}", S, **given)
    return made


async def go_on() -> Literal[S.MIDDLE]:
    """To the middle."""
    return S.MIDDLE


async def come_to_an_end() -> Literal[S.END, S.MIDDLE]:
    """Or not."""
    return S.END


async def go_round() -> Literal[S.LOOP]:
    """For ever."""
    return S.LOOP


async def go_anywhere() -> S:
    """The next state is a matter of chance."""
    return S.END if outlive.random() else S.LOOP


def whole(name: str) -> Machine:
    """Without fault."""
    made = machine(name)
    made.state(S.BEGIN)(go_on)
    made.workflow(S.MIDDLE)(go_anywhere)
    made.timer(S.LOOP, 1, then=S.END)
    return made


def problems(made: Machine) -> list[str]:
    """What is wrong with it."""
    with pytest.raises(MachineError) as caught:
        made.validate()
    return list(caught.value.problems)


def test_a_whole_machine_is_valid() -> None:
    """A state that does not say where it goes may go anywhere."""
    whole("whole").validate()


def test_every_state_needs_a_handler() -> None:
    """Or is an exit."""
    made = machine()
    made.state(S.BEGIN)(go_anywhere)

    assert problems(made) == [
        "state MIDDLE has no handler and is not an exit",
        "state LOOP has no handler and is not an exit",
    ]


def test_states_that_cannot_be_reached_are_named() -> None:
    """A state that no other state leads to is named as a problem of its machine."""
    made = machine()
    made.state(S.BEGIN)(go_on)
    made.state(S.MIDDLE)(come_to_an_end)
    made.state(S.LOOP)(go_round)

    assert problems(made) == ["state LOOP cannot be reached from BEGIN"]


def test_a_machine_must_be_able_to_end() -> None:
    """An exit that cannot be reached is not an exit."""
    made = machine(exits=[S.END])
    made.state(S.BEGIN)(go_on)
    made.state(S.MIDDLE, to=[S.LOOP])(go_anywhere)
    made.state(S.LOOP)(go_round)

    found = problems(made)
    assert "no exit can be reached from BEGIN" in found
    assert "state LOOP never comes to an exit" in found
    assert "it has no exit" in problems(machine(exits=[]))


def test_an_exit_has_no_handler() -> None:
    """It would never run."""
    made = whole("exit")
    made.state(S.END)(come_to_an_end)

    assert problems(made) == ["exit END has a handler, which would never run"]


@pytest.mark.parametrize(
    ("join", "options", "expected"),
    [
        (All(), {}, "its join All has no then="),
        (Quorum(3, then=S.END), {}, "2 branches can never be Quorum(3)"),
        (Percentage(0, then=S.END), {}, "Percentage(0): give a share above 0, and 1 at most"),
        (PartialTimeout(then=S.END), {}, "PartialTimeout needs the timeout= of the split"),
    ],
)
def test_a_split_that_cannot_work_is_refused(join: Any, options: dict[str, Any], expected: str) -> None:
    """Whatever is wrong with it."""
    made = machine()
    made.state(S.BEGIN)(go_anywhere)
    made.state(S.MIDDLE)(come_to_an_end)
    made.split(S.LOOP, [go_on, go_round], join=join, **options)

    assert f"split LOOP {expected}" in problems(made)


def test_a_split_has_branches_of_different_names() -> None:
    """A split needs as many branches as its join waits for, and each has a name of its own."""
    made = machine()
    made.split(S.BEGIN, [], join=Quorum(2, then=S.END))
    made.split(S.MIDDLE, [go_on, go_on], join=All(then=S.END))

    assert {
        "split BEGIN 0 branches can never be Quorum(2)",
        "split MIDDLE has two branches of one name; give a dict of branches by name",
    } <= set(problems(made))


@pytest.mark.parametrize("percent", [7, 14, 28, 29, 55, 56, 57, 58])
def test_a_percentage_is_rounded_up_but_not_for_nothing(percent: int) -> None:
    """7 % of 100 are 7, whatever a float makes of it; 7.1 % are 8."""
    assert wanted(Percentage(percent / 100), 100) == percent
    assert wanted(Percentage(percent / 100 + 0.001), 100) == percent + 1


async def test_an_invalid_machine_cannot_be_started() -> None:
    """The error says all that is wrong, and nothing was written."""
    made = machine("unfinished")
    async with TestEngine() as engine:
        with pytest.raises(MachineError, match=r"state BEGIN has no handler .*; state MIDDLE"):
            await engine.start(made, id="run-1")
        with pytest.raises(MachineError):
            await engine.start(made.bind(None), id="run-1")
        with pytest.raises(MachineError):
            await engine.start_batch(made, [None], id="batch-1")
        assert [] == list(await engine.list())


async def test_a_worker_with_an_invalid_machine_parks_its_runs(place: Place) -> None:
    """A process without the machine started it; new code can go on."""
    async with place.engine(worker=False) as client:
        await client.start(whole("late"), id="run-1")
    broken = machine("late")
    async with place.engine(registry=registry_of(broken)) as engine:
        assert "machine checks.late cannot run: state BEGIN has no handler" in await parks(engine.get("run-1"))


# -- Definitions -------------------------------------------------------------------------------------------------------


class Other(enum.Enum):
    """Of another machine."""

    BEGIN = "begin"


def test_a_definition_that_cannot_be_is_refused_at_once() -> None:
    """Where it is written."""
    with pytest.raises(MachineError, match=r"<Other.BEGIN: 'begin'> is not a state of S"):
        machine(start=Other.BEGIN)
    with pytest.raises(MachineError, match="are not an enumeration"):
        outlive.Machine("checks.none", int, start=1, exits=[2])  # type: ignore[call-overload]
    with pytest.raises(DefinitionError, match="version=0 cannot work"):
        machine(version=0)
    with pytest.raises(DefinitionError, match="timeout=0 cannot work"):
        machine(timeout=0)
    with pytest.raises(MachineError, match="is not a state of S"):
        machine().state(Other.BEGIN)(go_on)  # type: ignore[arg-type]
    with pytest.raises(DefinitionError, match="exclude each other"):
        machine().state(S.BEGIN, once=True, transaction=True)(go_on)
    with pytest.raises(DefinitionError, match="wants more than the 1 it is given"):
        machine().state(S.BEGIN)(needy)


async def needy(data: None, more: int) -> S:
    """The machine gives it one argument."""
    return S.END


def test_a_state_is_defined_once() -> None:
    """A state with two functions is refused; the same function again is accepted, as when a cell of a notebook runs
    twice."""
    made = machine()
    made.state(S.BEGIN)(go_on)
    made.state(S.BEGIN)(go_on)
    with pytest.raises(MachineError, match=r"state BEGIN is defined twice: at .*test_checks.py:\d+ and .*:\d+"):
        made.state(S.BEGIN)(go_round)


def test_a_name_belongs_to_one_machine() -> None:
    """Or to one workflow; the same module may define it again."""
    machine("twice")
    machine("twice")
    space: dict[str, Any] = {"__name__": "elsewhere", "outlive": outlive, "S": S}
    with pytest.raises(DuplicateDefinitionError, match=r"test_checks\.py"):
        exec("outlive.Machine('checks.twice', S, start=S.BEGIN, exits=[S.END])", space)


# -- How it looks ------------------------------------------------------------------------------------------------------


def test_a_diagram_says_what_is_known_and_what_is_guessed() -> None:
    """A diagram marks with a question mark the arrows that only the code of a handler mentions."""
    made = whole("drawn")
    made.validate()

    assert made.diagram().splitlines() == [
        "stateDiagram-v2",
        "    [*] --> BEGIN",
        "    BEGIN --> MIDDLE",
        "    MIDDLE : MIDDLE (workflow)",
        "    MIDDLE --> LOOP : ?",
        "    MIDDLE --> END : ?",
        "    LOOP : LOOP (timer)",
        "    LOOP --> END",
        "    END --> [*]",
    ]
    assert repr(made) == "<machine checks.drawn@1>"


def test_a_diagram_says_of_which_kind_a_state_is() -> None:
    """One that is run again and again is not one that is run once."""
    made = machine("kinds")
    made.poll(S.BEGIN, to=[S.MIDDLE], retry=outlive.Retry(attempts=3, first=1))(go_on)
    made.stepped(S.MIDDLE, to=[S.END])(go_round)

    assert ["BEGIN : BEGIN (poll)", "MIDDLE : MIDDLE (stepped)"] == [
        line.strip() for line in made.diagram().splitlines() if " : " in line
    ]


def test_a_picture_has_every_state_and_every_arrow() -> None:
    """A well-formed SVG; guesses are dashed."""
    made = whole("painted")
    root = ElementTree.fromstring(made.diagram("svg"))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"BEGIN", "MIDDLE", "LOOP", "END"} < set(texts)
    paths = list(root.iter("{http://www.w3.org/2000/svg}path"))
    assert [None, "guess", "guess", None] == [path.get("class") for path in paths]


def test_a_picture_can_have_loops_and_strays() -> None:
    """A machine that is not valid yet has a picture, with its loops and unreachable states."""
    made = machine("strange")
    made.state(S.BEGIN, to=[S.BEGIN, S.MIDDLE])(go_on)
    made.state(S.MIDDLE, to=[S.BEGIN])(go_anywhere)

    root = ElementTree.fromstring(made.diagram("svg"))

    assert 3 == len(list(root.iter("{http://www.w3.org/2000/svg}path")))
    assert 4 == len(list(root.iter("{http://www.w3.org/2000/svg}rect")))
