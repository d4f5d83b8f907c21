"""Every place that must name an event kind, a verb, a column, a filter, a setting or a metric names it.

The names come from the code, so a new one is looked for at once. A place that may do without a name stands in `BUT`,
with the reason. `NAME=RunTagged pytest -s -k shown tests/house/test_places.py` prints the places of one name; without
`NAME` it prints the places of all of them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec
import pytest

from outlive._kernel.client.finding import Filters
from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.model import RunFilter
from outlive._kernel.store.tables.columns import RUN_COLUMNS
from outlive.config.setting import EACH, SETTINGS
from outlive.metrics.table import COUNTERS, METRICS
from outlive.telemetry import Counters
from tests.docs import words
from tests.remote.test_verbs import ONLY_AN_ENGINE

ROOT = Path(__file__).parents[2]
PACKAGE = "src/outlive"
PROTOCOLS = f"{PACKAGE}/**/*contract.py {PACKAGE}/engine/any_engine.py {PACKAGE}/_kernel/client/handle.py"
REMOTE = f"{PACKAGE}/**/remote.py {PACKAGE}/remote/*.py {PACKAGE}/_kernel/client/handle.py"
OPERATIONS = f"{PACKAGE}/_features/**/*.py {PACKAGE}/http/operations/*.py"
DEF = r"^    (async )?def {}\("
STORES = f"{PACKAGE}/_kernel/store"
PROOF = "proof/differential"


class Place(NamedTuple):
    """A place that names all members of a kind."""

    files: str
    """A file or patterns of files, with spaces between; one of the files has the name."""
    form: str = r"\b{}\b"
    """How the name is found there, as a regular expression."""
    name_of: Callable[[str], str] = str
    """What the name is called there."""


class Kind(NamedTuple):
    """Something that is named in many places."""

    members: list[str]
    places: list[Place]


def wire_name(name: str) -> str:
    """A filter in the query of a request: tags come one by one."""
    return {"tags": "tag"}.get(name, name)


def flag(name: str) -> str:
    """A filter as an option of a command."""
    return "--" + {"tags": "tag", "ids": "run-id", "version": "workflow-version"}.get(name, name).replace("_", "-")


def method_of(verb: str) -> str:
    """The last name of a verb: that of `engine.queues.pause` is `pause`."""
    return verb.rsplit(".", 1)[-1]


KINDS: dict[str, Kind] = {
    "event kind": Kind(
        [it.__name__ for it in get_args(AnyEvent)],
        [
            Place(f"{PACKAGE}/_kernel/journal/event.py", r"^class {}\("),
            Place(f"{PACKAGE}/_kernel/journal/fold.py"),
            Place(f"{PACKAGE}/_kernel/replay/feeding.py"),
            Place(f"{PACKAGE}/_kernel/journal/words.py"),
            Place(f"{PACKAGE}/_kernel/client/timeline.py", '"{}"'),
            Place(f"{PACKAGE}/dashboard/static/views/run/timeline.js"),
            Place(f"{PACKAGE}/events.py", '"{}"'),
            Place("docs/internals/journal-format.md", "^\\| (`\\w+`, )*`{}`"),
            Place("docs/reference/events.md", r"^## `events\.{}`"),
            Place("tests/golden/*.jsonl", '"t":"{}"'),
        ],
    ),
    "verb": Kind(
        sorted(it for it in words.verbs() if it.startswith("engine.") and it.split(".")[1] not in ONLY_AN_ENGINE),
        [
            Place(PROTOCOLS, DEF, method_of),
            Place(REMOTE, DEF, method_of),
            Place(OPERATIONS, r'@operation\(\s*"{}"', words.verbs().__getitem__),
            Place("docs/reference/words.md", r"^\|.*`{}`"),
        ],
    ),
    "column": Kind(
        list(RUN_COLUMNS),
        [
            Place(f"{STORES}/tables/columns.py", '"{}"'),
            Place(f"{STORES}/tables/rows.py"),
            Place(f"{STORES}/sqlite/migrations/*.sql"),
            Place(f"{STORES}/postgres/migrations/*.sql"),
            Place(f"{PACKAGE}/_kernel/model/run.py", r"^    {}: "),
        ],
    ),
    "filter": Kind(
        list(Filters.__annotations__),
        [
            Place(f"{PACKAGE}/_kernel/client/finding.py", r"^    {}: "),
            Place(f"{PACKAGE}/_kernel/client/finding.py", r"^    {}: .+ = \w+,$"),
            Place(f"{PACKAGE}/engine/any_engine.py", r"^ {{12}}([a-z, _]*, )?{}[,:]"),
            Place(f"{PACKAGE}/http/wire/runs.py", r"^    {}: ", wire_name),
            Place(f"{PACKAGE}/cli/filters.py", '"{}"', flag),
            Place("docs/guides/finding.md", "`{}[`=]"),
            Place("tests/finding/test_*.py"),
        ],
    ),
    "field of a filter": Kind(
        [it.name for it in msgspec.structs.fields(RunFilter)],
        [
            Place(f"{PACKAGE}/_kernel/model/run.py", r"wanted\.{}\b"),
            Place(f"{STORES}/**/*.sql", "[:{{]{}\\b"),
            Place(f"{PROOF}/plan.py", r"\b{}="),
            Place(f"{PROOF}/oracle.py", r"wanted\.{}\b"),
            Place("conformance/src/outlive_conformance/suite/*.py", r"\b{}="),
        ],
    ),
    "setting": Kind(
        [it.name for it in SETTINGS if EACH not in it.name],
        [Place("docs/guides/configuration.md", "`{}`")],
    ),
    "metric": Kind(
        [it.name for it in METRICS if it not in COUNTERS],
        [Place("docs/guides/metrics.md", "`{}`")],
    ),
    "counter": Kind(
        [it.name for it in fields(Counters) if it.type == "int"],
        [
            Place(f"{PACKAGE}/**/*.py", r"(counters|self)\.{} \+="),
            Place("docs/guides/operating.md", r"^\| `{}`"),
        ],
    ),
}

BUT: dict[tuple[str, str], dict[str, str]] = {
    ("verb", PROTOCOLS): {"engine.audit.acting": "a connection acts as its key says"},
    ("verb", REMOTE): {"engine.audit.acting": "a connection acts as its key says"},
    ("verb", OPERATIONS): {
        "engine.audit.acting": "a connection acts as its key says",
        "engine.get": "it makes a handle and asks for nothing",
        "engine.batches.get": "it makes a handle and asks for nothing",
        "engine.bulk.get": "it makes a handle and asks for nothing",
        "engine.queues.drain": "it is a pause and many looks",
    },
    ("column", f"{PACKAGE}/_kernel/model/run.py"): {"key": "the database makes it, and no run has it"},
    ("filter", f"{PACKAGE}/cli/filters.py"): {"roots_only": "commands have `--children`, and only those that list"},
    ("field of a filter", f"{STORES}/**/*.sql"): {
        "since_at": "it is the bound `low`",
        "until_at": "it is the bound `high`",
        "asks": "it is a name in the index of waits: `entry_of` in `tables/searching.py`",
    },
}
"""By the kind and the files: the names that are not there, each with the reason."""


@cache
def texts(files: str) -> dict[str, str]:
    """The files of a place with their texts."""
    found = (path for pattern in files.split() for path in ROOT.glob(pattern))
    return {it.relative_to(ROOT).as_posix(): it.read_text("utf-8") for it in sorted(found)}


def found_in(place: Place, name: str) -> list[str]:
    """The files of a place that have the name."""
    pattern = re.compile(place.form.format(re.escape(place.name_of(name))), re.MULTILINE)
    return [file for file, text in texts(place.files).items() if pattern.search(text)]


def missing(kind: str) -> Iterable[str]:
    """The names of a kind that a place lacks without a reason."""
    for place in KINDS[kind].places:
        but = BUT.get((kind, place.files), {})
        for name in KINDS[kind].members:
            if bool(found_in(place, name)) == (name in but):
                yield f"{place.files}: {'has' if name in but else 'lacks'} {place.name_of(name)}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_place_names_every_member(kind: str) -> None:
    """Each name of the code stands in all its places, or has a reason; a reason goes when it is needed no longer."""
    assert KINDS[kind].members
    assert all(texts(place.files) for place in KINDS[kind].places)
    lacking = list(missing(kind))
    assert not lacking, "\n".join(lacking)


def test_places_are_shown() -> None:
    """The places of a name are printed for people who add one like it."""
    wanted = os.environ.get("NAME")
    shown = [
        (kind, name, sorted({file for place in places for file in found_in(place, name)}))
        for kind, (members, places) in KINDS.items()
        for name in members
        if wanted in (None, name)
    ]
    for kind, name, files in shown:
        print(f"{kind} {name}: {', '.join(files)}")  # noqa: T201  # It is asked for.

    assert shown


def test_a_missing_place_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that no place has is reported for each of them."""
    monkeypatch.setitem(KINDS, "metric", KINDS["metric"]._replace(members=["outlive_nothing"]))

    assert list(missing("metric")) == ["docs/guides/metrics.md: lacks outlive_nothing"]
