"""What `import outlive` costs and shows."""

from __future__ import annotations

import importlib
import subprocess
import sys

import outlive

HEAVY = ("apsw", "asyncpg", "cryptography", "multiprocessing", "opentelemetry", "pydantic", "starlette", "yaml")
FRAMEWORKS = ("agents", "django", "langchain_core", "langgraph", "openai", "pydantic_ai")
OWN = ("uvicorn", "outlive.engine", "outlive.http", "outlive.testing")


def test_defining_workflows_loads_no_driver_and_no_engine() -> None:
    """A module that only defines workflows imports in no time, whatever is installed."""
    program = f"import sys, outlive; print([name for name in {HEAVY + FRAMEWORKS + OWN!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_modules_are_there_without_an_import_of_their_own() -> None:
    """`except outlive.errors.RunNotFoundError` in a program that has used nothing else yet."""
    program = "import outlive; print(outlive.errors.RunNotFoundError.__name__, outlive.codecs.__name__)"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.split() == ["RunNotFoundError", "outlive.codecs"]


def test_tab_shows_what_is_for_users() -> None:
    """Every public name and module is there, and none of what they are made of."""
    shown = dir(outlive)

    assert set(shown) >= set(outlive.__all__)
    assert not [name for name in shown if name.startswith("_") and name != "__version__"]
    for name in set(shown) - set(outlive.__all__):
        importlib.import_module(f"outlive.{name}")
    assert {"typing", "TYPE_CHECKING", "client"}.isdisjoint(shown)
