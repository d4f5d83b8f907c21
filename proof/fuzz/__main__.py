"""`make fuzz N=100000`: so many random expressions and documents of flows, each with its limits.

A third are expressions that mean something and are compared with Google's CEL, a third are broken or hostile ones, a
third are documents. Nothing but `ExpressionError` and `FlowError` may come out of them, none may take 1 s of CPU time,
and the process may not need more than 200 MB more than at its beginning. It ends with code 1 if there is a finding; a
finding has the number of its input: `--first 1234 --inputs 1` shows it again.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from types import FrameType
from typing import Any

from outlive._cel import ExpressionError, compile_value, parse
from outlive._cel.types import ANY
from outlive._features.flows.built_in import NAMES, find_built_in
from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import Known, shape_of
from outlive.errors.document import FlowError
from proof.fuzz.documents import GOOD, document
from proof.fuzz.grammar import SCOPE, Grammar
from proof.fuzz.nonsense import nonsense, plain_data
from proof.fuzz.oracle import difference

SECONDS_MAX = 1.0
MEMORY_MAX = 200 * 1024
"""KiB."""
SHOWN_MAX = 20


class TooLongError(Exception):
    """An input took more than its time."""


def main() -> int:
    """Try the inputs, and print what is found."""
    parser = argparse.ArgumentParser(prog="python -m proof.fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    signal.signal(signal.SIGPROF, _stop)
    counts: Counter[str] = Counter()
    for make, attempt in KINDS:
        # The first of each kind loads modules and makes environments, which is not what is measured.
        with suppress(ExpressionError, FlowError):
            attempt(make(random.Random(0)))
    _check(json.dumps(GOOD))  # If it is refused, changing something in it shows nothing.
    start, slowest, found = _memory(), (0.0, 0), 0
    for number in range(given.first, given.first + given.inputs):
        make, attempt = KINDS[number % len(KINDS)]
        made = make(random.Random(f"{given.seed}/{number}"))
        began = time.process_time()
        problem = _tried(attempt, made, counts)
        slowest = max(slowest, (time.process_time() - began, number))
        if not problem and _memory() - start > MEMORY_MAX:
            problem, start = f"needs {(_memory() - start) // 1024} MB", _memory()
        if problem:
            found += 1
            if found <= SHOWN_MAX:
                print(f"input {number}: {problem}")
        if (number + 1) % 10_000 == 0:
            print(f"{number + 1 - given.first:,} inputs: {found} findings", file=sys.stderr, flush=True)
    outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(counts.items()))
    print(
        f"{given.inputs:,} inputs: {found} findings ({outcomes}); the slowest, {slowest[1]}, took "
        f"{slowest[0] * 1000:.0f} ms; {(_memory() - start) / 1024:.0f} MB more than at the beginning"
    )
    return 1 if found else 0


def _tried(attempt: Callable[[Any], str], made: Any, counts: Counter[str]) -> str:
    """What is wrong with one input, or nothing."""
    name = attempt.__name__.strip("_")
    signal.setitimer(signal.ITIMER_PROF, SECONDS_MAX)
    try:
        problem = attempt(made)
        counts[name] += 1
    except TooLongError:
        problem = f"takes more than {SECONDS_MAX:.0f} s"
    except (ExpressionError, FlowError):
        counts[f"{name}: refused"] += 1
        problem = ""
    except Exception as error:  # This is what the search is for.
        problem = f"{type(error).__name__}: {error}"[:500]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return problem


def _stop(number: int, frame: FrameType | None) -> None:
    raise TooLongError


def _memory() -> int:
    """KiB that the process has needed at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _meaningful(rng: random.Random) -> str:
    return Grammar(rng).expression()


def _agree(text: str) -> str:
    problem = difference(text, SCOPE)
    return f"{problem} in {text}" if problem else ""


def _hostile(rng: random.Random) -> tuple[str, dict[str, Any]]:
    return nonsense(rng), {name: plain_data(rng) for name in ("a", "b", "c", "x", "input", "steps")}


def _evaluate(made: tuple[str, dict[str, Any]]) -> str:
    text, scope = made
    expression = parse(text)
    with suppress(ExpressionError):  # What happens late is looked at too.
        expression.check(dict.fromkeys(scope, ANY))
    with suppress(ExpressionError):
        compile_value({"a": f"<${{{{ {text} }}}}>"}).render(scope)
    expression.evaluate(scope)
    return ""


def _check(text: str) -> str:
    parse_document(text, known=_known())
    return ""


@cache
def _known() -> Known:
    """The built-ins, and a step that is registered."""
    found = {name: find_built_in(name) for name in NAMES}
    return Known({name: shape_of(each) for name, each in found.items()}, frozenset({"shop.reserve"}))


KINDS: list[tuple[Callable[[random.Random], Any], Callable[[Any], str]]] = [
    (_meaningful, _agree),
    (_hostile, _evaluate),
    (document, _check),
]


if __name__ == "__main__":
    sys.exit(main())
