"""A cloud for one function: it calls the handler in examples/hosts/function.py as AWS Lambda does.

    python -m tests.deploy.function_host 3 '{}' '{"order": "o-1"}'

Each event has so many seconds. The test kills the process when they are over.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

FUNCTION = Path(__file__).parents[2] / "examples" / "hosts" / "function.py"


class Context:
    """The part of the context of AWS Lambda that the function uses."""

    def __init__(self, seconds: float) -> None:
        self._ends_at = time.monotonic() + seconds

    def get_remaining_time_in_millis(self) -> int:
        """As AWS Lambda has it."""
        return round((self._ends_at - time.monotonic()) * 1000)


def load() -> Any:
    """The module of the function."""
    spec = importlib.util.spec_from_file_location("function", FUNCTION)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["function"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    """Call the handler with each event, and say what it answers."""
    function = load()
    for event in sys.argv[2:]:
        say("called")
        say(json.dumps(function.handler(json.loads(event), Context(float(sys.argv[1])))))


def say(line: str) -> None:
    """One line for the test, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
