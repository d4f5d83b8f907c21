"""What `import outlive` costs and shows."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import outlive

HEAVY = ("apsw", "asyncpg", "cryptography", "multiprocessing", "opentelemetry", "pydantic", "starlette", "yaml")
FRAMEWORKS = ("agents", "django", "langchain_core", "langgraph", "openai", "pydantic_ai")
NAMES_MAX = 40
NAMESPACES = {
    *("checkpoints", "codecs", "errors", "events", "flow", "http", "integrations", "limits"),
    *("machine", "metrics", "middleware", "retention", "testing", "types"),
}
OWN = ("uvicorn", "outlive.engine", "outlive.http", "outlive.testing")


def test_defining_workflows_loads_no_driver_and_no_engine() -> None:
    """A module that only defines workflows imports in no time, whatever is installed."""
    program = f"import sys, outlive; print([name for name in {HEAVY + FRAMEWORKS + OWN!r} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_the_front_door_has_few_names() -> None:
    """A newcomer sees what programs are written with; what belongs to a subject is in the namespace of that subject."""
    assert len(outlive.__all__) <= NAMES_MAX


def test_namespaces_are_attributes() -> None:
    """`except outlive.errors.RunNotFoundError` in a program that has imported nothing else."""
    shown = ", ".join(f"outlive.{name}.__name__" for name in sorted(NAMESPACES))

    done = subprocess.run([sys.executable, "-c", f"import outlive; print({shown})"], capture_output=True, text=True)

    assert done.stdout.split() == [f"outlive.{name}" for name in sorted(NAMESPACES)]


@pytest.mark.parametrize("name", sorted(NAMESPACES - {"integrations"}))
def test_a_namespace_has_the_names_that_it_lists(name: str) -> None:
    """Each can be had, and none of them is a name of `outlive` itself."""
    space = importlib.import_module(f"outlive.{name}")

    assert [it for it in space.__all__ if not hasattr(space, it)] == []
    assert set(space.__all__).isdisjoint(outlive.__all__)


def test_tab_shows_what_is_for_users() -> None:
    """Every public name and module is there, and none of what they are made of."""
    shown = dir(outlive)

    assert set(shown) == set(outlive.__all__) | NAMESPACES
    assert not [name for name in shown if name.startswith("_") and name != "__version__"]
    for name in set(shown) - set(outlive.__all__):
        importlib.import_module(f"outlive.{name}")
    assert {"typing", "TYPE_CHECKING", "client"}.isdisjoint(shown)


def test_a_public_name_means_one_thing() -> None:
    """A class has its name to itself, in whichever namespaces it is."""
    spaces = [importlib.import_module(f"outlive.{name}") for name in sorted(NAMESPACES - {"integrations"})]
    found: dict[str, set[int]] = {}
    for space in (outlive, *spaces):
        for name in space.__all__:
            found.setdefault(name, set()).add(id(getattr(space, name)))

    assert {name for name, things in found.items() if len(things) > 1} == set()
