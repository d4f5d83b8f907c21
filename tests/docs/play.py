"""Plays the examples of one page: `python -m tests.docs.play docs/guides/steps.md`.

All `python` blocks of a page run in order, in one process and one namespace, as if they stood in one script. A block
with a bare `await` runs as it would in `python -m asyncio`. What a block prints is compared with the `text output`
block behind it, if there is one; `...` there stands for anything. Blocks marked `python no-run` are only compiled. A
later block may import from one whose first line names a file (`# trip.py`).
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import io
import re
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import redirect_stdout
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType

from tests.docs.page import Block, blocks_of, name_of

RUN = "python"
ONLY_COMPILE = "python no-run"
OUTPUT = "text output"

_FILE = re.compile(r"# ([a-z_]+)\.py\n")


def examples(page: Path) -> Iterator[tuple[Block, str | None]]:
    """The blocks of Python, each with what it must print, if the page says."""
    end = Block("", "", 0)
    for block, following in pairwise([*blocks_of(page), end]):
        if block.info in (RUN, ONLY_COMPILE):
            yield block, following.text if following.info == OUTPUT else None


def compile_block(page: Path, block: Block) -> CodeType:
    """The code of a block; a traceback names the page and its line."""
    source = "\n" * (block.line - 1) + block.text
    code = compile(source, name_of(page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def play(page: Path, before: Callable[[Block], None] = lambda block: None) -> None:
    """Run the examples of a page; exits with a message if one prints something else than it should. `before` is called
    with each of them before it runs."""
    # What a user's script is called; dataclasses and enums are looked up by this name.
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    with asyncio.Runner() as runner:
        for block, wanted in examples(page):
            code = compile_block(page, block)
            if file := _FILE.match(block.text):
                sys.modules[file[1]] = module
            if block.info == RUN:
                before(block)
                check(page, block, wanted, run(code, module, runner))


def run(code: CodeType, module: ModuleType, runner: asyncio.Runner) -> str:
    """Run one block; what it printed."""
    with redirect_stdout(io.StringIO()) as printed:
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(eval(code, vars(module)))
        else:
            exec(code, vars(module))
    return printed.getvalue()


def check(page: Path, block: Block, wanted: str | None, printed: str) -> None:
    """Compare what a block printed with what the page says."""
    checker = doctest.OutputChecker()
    printed = "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
    if wanted is not None and not checker.check_output(wanted, printed, doctest.ELLIPSIS):
        sys.exit(f"{name_of(page)}:{block.line}: the page says\n{wanted}\nand the example printed\n{printed}")


if __name__ == "__main__":
    # LangGraph imports langsmith, which asks for what Python 3.14 says is going away.
    warnings.filterwarnings("ignore", "'asyncio.iscoroutinefunction'", DeprecationWarning, "langsmith")
    play(Path(sys.argv[1]))
