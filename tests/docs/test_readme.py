"""The README: a visitor reads all of it, and types its two commands."""

from __future__ import annotations

import re

from tests.docs.page import README

WORDS_MAX = 950
"""About four minutes, code included. A guide has room for more."""
CHARACTERS_MAX = 80
"""The width of a terminal."""
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_readme_can_be_read_at_one_go() -> None:
    """It sends the reader to a page for all that is not needed to decide and to begin."""
    words = README.read_text("utf-8").split()

    assert len(words) <= WORDS_MAX, f"{len(words)} words: move what is new to a guide, and link it"


def test_a_fresh_machine_needs_two_commands_of_one_line() -> None:
    """They are the only commands in a block: one installs, the other shows that it works."""
    blocks = SHELL.findall(README.read_text("utf-8"))
    install, show = [line for block in blocks for line in block.splitlines()]

    assert install.startswith("python3 -m venv ")
    assert "pip install" in install
    assert show == "outlive demo"
    assert max(len(install), len(show)) <= CHARACTERS_MAX
