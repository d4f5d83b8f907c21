"""Pages about the inside name all that their tables are about: a table that misses what came later is read as whole."""

import json
import re
from pathlib import Path

import pytest

from outlive._kernel.store.contract import Store
from tests.docs.page import DOCS, ROOT, section_of

INSIDE = DOCS / "internals"
STATIC = ROOT / "src" / "outlive" / "dashboard" / "static"
SIMULATION = ROOT / "proof" / "simulation"


def in_first_cells(text: str) -> set[str]:
    """The code in the first cells of the tables of a text; `a/{b,c}` stands for `a/b` and `a/c`."""
    found = set()
    for code in re.findall(r"`([^`]+)`", "\n".join(line.split("|")[1] for line in text.splitlines() if "|" in line)):
        folder, brace, names = code.partition("{")
        found |= {f"{folder}{name}" for name in names.removesuffix("}").split(",")} if brace else {code}
    return found


def test_the_page_of_the_store_names_every_verb() -> None:
    """Each verb of the contract is in the table, those from files of their own among them."""
    parts = [part for part in Store.__mro__ if part.__module__.startswith("outlive.")]
    verbs = {name for part in parts for name in vars(part) if not name.startswith("_")}

    assert verbs == in_first_cells(section_of(INSIDE / "store.md", "## The contract"))


def test_the_page_of_the_store_names_every_table_of_sqlite() -> None:
    """Each table that a migration creates has a row."""
    migrations = ROOT / "src" / "outlive" / "_kernel" / "store" / "sqlite" / "migrations"
    created = {
        name for path in migrations.glob("*.sql") for name in re.findall(r"CREATE TABLE (\w+)", path.read_text("utf-8"))
    }
    rows = [line.split("|")[1] for line in section_of(INSIDE / "store.md", "### Tables").splitlines() if "|" in line]

    assert created == set(re.findall(r"outlive_\w+", "\n".join(rows)))


def test_the_page_of_the_simulator_names_every_module() -> None:
    """Each module of the simulator has a row."""
    paths = [path.relative_to(SIMULATION).with_suffix("").as_posix() for path in SIMULATION.rglob("*.py")]

    assert {path for path in paths if "__" not in path} == in_first_cells(
        section_of(INSIDE / "simulation.md", "## How it works").partition("\n### ")[0]
    )


@pytest.mark.parametrize(
    ("heading", "folder"), [("# How the dashboard is made", STATIC), ("## The page of a run", STATIC / "views" / "run")]
)
def test_the_page_of_the_dashboard_names_every_module(heading: str, folder: Path) -> None:
    """Each module has a row, but for views, of which each is the module of one route."""
    found = [path.relative_to(folder).as_posix() for path in folder.rglob("*.js")]
    text = section_of(INSIDE / "dashboard.md", heading).partition("\n## ")[0]

    assert {path for path in found if not path.startswith("views/")} == {
        name for name in in_first_cells(text) if name.endswith(".js") and "*" not in name
    }


def test_the_page_of_the_dashboard_asks_for_operations_that_there_are() -> None:
    """The example of a view works as it is written."""
    paths = json.loads((DOCS / "openapi.json").read_text("utf-8"))["paths"].values()
    known = {operation["operationId"] for methods in paths for operation in methods.values()}
    asked = re.findall(r"(?:can\(|needs: )'([^']+)'", (INSIDE / "dashboard.md").read_text("utf-8"))

    assert asked
    assert {*asked} <= known


def test_the_page_of_the_benchmark_names_every_module() -> None:
    """Each module of the benchmark has a row. [FE-O15]"""
    modules = {path.name for path in (ROOT / "bench").glob("*.py") if "__" not in path.name}

    assert modules == in_first_cells((ROOT / "bench" / "README.md").read_text("utf-8"))


def test_braces_in_a_first_cell_stand_for_several() -> None:
    """Only the first cell counts, and every name in it."""
    assert in_first_cells("| `a`, `m/{b,c}` | `d` |\n|---|---|\n`e`") == {"a", "m/b", "m/c"}
