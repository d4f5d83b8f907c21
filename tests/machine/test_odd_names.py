"""States with names that a picture could take for something else."""

from __future__ import annotations

import enum
import re
from typing import Any
from xml.etree import ElementTree

import pytest

import outlive

ODD = [
    'x"]; click',
    "<script>alert(1)</script>",
    "a b",
    "été",
    "--> [*]\n  evil --> B",
    "nul\0",
    "a-b",
    "a:b",
    "{",
    "#35;",
]
TAKEN = ["note", "Default", "STATE", "class", "click"]


def machine(*exits: str) -> outlive.Machine[Any, None]:
    """One state, and exits of these names."""
    states: Any = enum.EnumType.__call__(enum.Enum, "states", ["GO", *exits])
    made = outlive.Machine("odd", states, start=states.GO, exits=[each for each in states if each.name != "GO"])

    async def go() -> None: ...

    made.state(states.GO, to=list(states))(go)
    made.validate()
    return made


@pytest.mark.parametrize("name", [*ODD, *TAKEN])
def test_mermaid_has_every_name_as_text(name: str) -> None:
    """A state whose name is not a plain word, or is a keyword of Mermaid, has a number and a label in the diagram."""
    lines = machine(name).diagram().splitlines()

    assert lines[:4] == ["stateDiagram-v2", "    [*] --> GO", "    GO --> GO", "    GO --> state_2"]
    assert re.fullmatch(r"    state_2 : ([A-Za-z0-9_ ]|#\d+;)+", lines[4])
    assert lines[5:] == ["    state_2 --> [*]"]


def test_a_label_says_the_name() -> None:
    """Sign by sign, in the way of Mermaid."""
    assert "    state_2 : a#45;b #60;\n" in machine("a-b <").diagram()
    assert "    NOTES --> [*]\n" in machine("NOTES").diagram()


@pytest.mark.parametrize("name", [*ODD, *TAKEN])
def test_an_image_has_every_name_as_text(name: str) -> None:
    """An SVG has every odd name as text, is well-formed and has no script."""
    root = ElementTree.fromstring(machine(name).diagram("svg"))

    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert re.sub(r"[\0\n]", " ", name) in texts
    assert not list(root.iter("{http://www.w3.org/2000/svg}script"))


def test_a_box_is_as_wide_as_its_name() -> None:
    """Long names do not stand beside their boxes, nor in others."""
    name = "WAITS_FOR_THE_CONFIRMATION_OF_THE_PAYMENT"
    root = ElementTree.fromstring(machine(name).diagram("svg"))

    widths = {int(element.get("width", 0)) for element in root.iter("{http://www.w3.org/2000/svg}rect")}
    assert widths == {9 * len(name)}
