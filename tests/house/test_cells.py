"""Cells of the store are one table: the kernel, or the feature that writes a cell, declares what it holds."""

import importlib
import re

from outlive._kernel.model.cells import cell_table, cells_of
from outlive.engine.services import load_features
from tests.house.test_rooms import PACKAGE, modules_of

CONSTANT = re.compile(r"^(\w+_CELLS?) = \"", re.MULTILINE)


def test_every_constant_of_a_cell_is_in_the_table() -> None:
    """A constant that ends in `_CELL` or `_CELLS` names a cell that is declared."""
    load_features()
    found = {
        (module, name): getattr(importlib.import_module(module), name)
        for module, path in modules_of(PACKAGE).items()
        for name in CONSTANT.findall(path.read_text("utf-8"))
    }

    assert len(found) >= 20
    assert not [at for at, cell in found.items() if not (own := cells_of(cell)) or own.name != cell]


def test_every_cell_of_the_table_is_a_constant() -> None:
    """No cell is declared that no code writes, and no name is declared twice."""
    load_features()
    texts = "\n".join(path.read_text("utf-8") for path in modules_of(PACKAGE).values())

    assert not [it.name for it in cell_table() if texts.count(f'= "{it.name}"') != 1]


def test_a_cell_is_found_by_its_whole_name() -> None:
    """The name of a cell that has a family is looked up by the part before the slash, and no other name is."""
    load_features()

    assert cells_of("limit/mails") is cells_of("limit/")
    assert cells_of("outlive.flows") is not cells_of("outlive.flows/orders")
    assert cells_of("outlive.pauses2") is None
    assert cells_of("limits/mails") is None


def test_the_page_of_the_store_lists_the_table() -> None:
    """The table of cells in `docs/internals/store.md` is that of the code."""
    load_features()
    page = (PACKAGE.parents[1] / "docs" / "internals" / "store.md").read_text("utf-8")
    listed = page.partition("| Cell | Holds |")[2].partition("\n\n")[0].splitlines()[2:]

    wanted = [
        f"| `{it.name}` | {it.holds} | {f'`{it.verb}`' if it.verb else ''} | {'yes' if it.left else ''} |"
        for it in cell_table()
    ]
    assert listed == wanted, "docs/internals/store.md should have\n" + "\n".join(wanted)
