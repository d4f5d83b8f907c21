"""The places that a person names: a program, documents and folders of flows; and the store that is used unless one is
named."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCUMENTS = (".yaml", ".yml", ".json")
FLOWS = tuple(f".flow{ending}" for ending in DOCUMENTS)
"""How the names of documents end that are found in a folder: other files there may be YAML too."""
FLOW_STORE = "flows.db"


class PlaceError(Exception):
    """A named place cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Places:
    """The places of the code that the worker runs."""

    app: str | None = None
    """A file, a module, or either with the name of an engine in it."""
    flows: tuple[Path, ...] = ()
    """Documents, and folders of documents."""

    @classmethod
    def of(cls, names: Sequence[str]) -> Places:
        """The places with these names: a folder and a document are flows, everything else is a program.

        Raises:
            PlaceError: there is more than one program, or a folder without anything.
        """
        flows = [Path(name) for name in names if Path(name).is_dir() or name.endswith(DOCUMENTS)]
        apps = [name for name in names if Path(name) not in flows]
        if len(apps) > 1:
            raise PlaceError(f"{' and '.join(apps)}: give one program; it can import the others")
        for place in flows:
            if not place.exists():
                raise PlaceError(f"there is no file {place}")
            if place.is_dir() and not documents_in([place]):
                raise PlaceError(f"there is no document of a flow (*.flow.yaml) in {place}")
        return cls(apps[0] if apps else None, tuple(flows))

    @property
    def has_own_engine(self) -> bool:
        """Whether the program brings an engine, which has a store of its own."""
        return self.app is not None and ":" in self.app

    def default_store(self) -> str | None:
        """The store beside the program or the flows; None if neither is given."""
        if self.app is not None:
            return store_beside(self.app)
        if self.flows:
            first = self.flows[0]
            return f"sqlite:{(first if first.is_dir() else first.parent) / FLOW_STORE}"
        return None


def store_beside(app: str) -> str:
    """The store of a program that names none: `app.db` beside `app.py`, or in the current folder for a module."""
    source = app.partition(":")[0]
    file = Path(source) if source.endswith(".py") else Path(source.rpartition(".")[2] + ".py")
    return f"sqlite:{file.with_suffix('.db')}"


def documents_in(places: Iterable[Path]) -> list[Path]:
    """The documents that are named, and those in the folders that are named and below them."""
    found: list[Path] = []
    for place in places:
        if place.is_dir():
            found += sorted(file for file in place.rglob("*") if file.name.endswith(FLOWS) and file.is_file())
        else:
            found.append(place)
    return found
