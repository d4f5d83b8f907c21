"""The drawing of the way from a start to a step, in the page about the architecture, shows the files that are on it."""

import re
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Any

import outlive
from tests.docs.page import DOCS, section_of

PACKAGE = Path(outlive.__file__).parent
FILES_MAX = 22
"""From `engine.start` to the first line of a step."""
WITHOUT_CODE = "draft.py"
"""Holds the change, and has no function that is called."""


class Lookout:
    """Notes in which files functions are called."""

    def __init__(self) -> None:
        self.is_on = False
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        """What `sys.setprofile` calls."""
        if self.is_on and event == "call":
            self.files.add(frame.f_code.co_filename)


look = Lookout()


@outlive.step
async def end_of_the_way(number: int) -> int:
    """The step has begun."""
    look.is_on = False
    return number


@outlive.workflow
async def way_to_a_step(number: int) -> int:
    """A run of one step."""
    return await end_of_the_way(number)


async def test_every_file_of_the_drawing_is_on_the_way(tmp_path: Path) -> None:
    """From `engine.start` to the first line of a step, on SQLite; and there are not too many of them."""
    section = section_of(DOCS / "internals" / "architecture.md", "## From a start to the first line of a step")
    there, _, _ = section.partition("And back")
    drawn = {f"/{name}" for name in re.findall(r"\d  ([\w/]+\.py)", there)}
    before = sys.getprofile()
    threading.setprofile(look)  # The store makes its threads when it is opened.
    try:
        async with outlive.Engine(f"sqlite:{tmp_path}/way.db") as engine:
            sys.setprofile(look)
            look.is_on = True
            run = await engine.start(way_to_a_step, 42)
            assert await run.result(timeout=30) == 42
    finally:
        look.is_on = False
        sys.setprofile(before)
        threading.setprofile(None)

    ours = {file for file in look.files if file.startswith(str(PACKAGE))}
    missing = {name for name in drawn if not any(file.endswith(name) for file in ours)}
    assert missing == {name for name in drawn if name.endswith(WITHOUT_CODE)}
    assert len(drawn) <= FILES_MAX
