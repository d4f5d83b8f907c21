"""Starting a workflow by its name, without its code: what workers describe, and what is checked."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

import pydantic
import pytest

import outlive
from outlive._kernel.client.definitions import WORKFLOWS_CELL, Describer
from outlive._kernel.define.registry import REGISTRY, Registry
from outlive.errors import InvalidArgumentError, StoreUnavailableError
from outlive.errors.program import UnknownWorkflowError
from tests.engine.inside import store_of
from tests.engine.support import Place, in_time, registry_of, until


class Size(enum.Enum):
    SMALL = "small"
    LARGE = "large"


@dataclass
class NamedLine:
    sku: str
    count: int = 1


class NamedAddress(pydantic.BaseModel):
    city: str


@dataclass
class NamedOrder:
    id: int
    lines: list[NamedLine] = field(default_factory=list)
    size: Size = Size.SMALL
    due: date | None = None


@outlive.workflow(version=2)
async def named_order(order: NamedOrder, address: NamedAddress | None = None, /, note: str = "") -> str:
    city = "nowhere" if address is None else address.city
    return f"{order.id} {sum(line.count for line in order.lines)} {order.size.value} {city} {note}"


@outlive.workflow(name="named_order", version=3, timeout=60)
async def named_order_3(id: int, *, rush: bool = False, **more: str) -> list[Any]:
    return [id, rush, more]


@outlive.workflow
async def named_plainly(anything, *rest: int):  # type: ignore[no-untyped-def]
    return [anything, *rest]


@pytest.fixture
def memory_place() -> Place:
    """A place in memory."""
    return Place(None)


async def described(engine: Any) -> None:
    """Do now what a worker does a second after its start."""
    await Describer(store_of(engine), REGISTRY).describe()


def stranger(place: Place) -> outlive.Engine:
    """A program that has none of this code, and no worker."""
    return place.engine(worker=False, registry=Registry())


@pytest.mark.every_store
async def test_a_program_without_the_code_starts_a_run_by_name(place: Place) -> None:
    """The newest version unless another is given; the worker gets the arguments as their types."""
    async with place.engine() as engine:
        await described(engine)
        async with stranger(place) as client:
            run = await client.start("named_order", {"id": 7, "rush": True, "by": "ann"}, tags={"a": "b"})
            old = await client.start(
                "named_order",
                [{"id": 1, "lines": [{"sku": "x", "count": 2}, {"sku": "y"}], "size": "large"}, {"city": "Lund"}],
                version=2,
                id="old-1",
            )
            again = await client.start("named_order", [{"id": 9}], version=2, id="old-1")

            assert await in_time(run.result()) == [7, True, {"by": "ann"}]
            assert await in_time(old.result()) == "1 3 large Lund " == await again.result()
            info = await run.info()
            assert (info.version, info.tags) == (3, {"a": "b"})
            assert info.timeout_at is not None  # It counts from when the worker began the run.
            assert info.timeout_at >= info.created_at + timedelta(seconds=60)
            plain = await client.start("named_plainly", [{"x": [1, None]}])
            assert await in_time(plain.result()) == [{"x": [1, None]}]


async def test_workflows_of_workers_are_listed(memory_place: Place) -> None:
    """The workflows of workers are listed with versions and schemas, and stay known when the workers are gone.
    [SF-R1 FE-O10]
    """
    async with stranger(memory_place) as client:
        async with memory_place.engine() as engine:
            await described(engine)
            found = {(it.name, it.version): it for it in await client.workflows.list()}
            new, old = found["named_order", 3], found["named_order", 2]
            assert (new.workers, old.workers) == (1, 1)
            assert new.arguments is not None
            assert new.arguments["required"] == ["id"]
            assert new.arguments["properties"]["rush"] == {"type": "boolean"}
            assert old.result == {"type": "string"}
            assert not [name for name, _ in found if name.startswith("outlive.")]
        assert {it.workers for it in await client.workflows.list()} == {0}
        assert (await client.start("named_order", {"id": 1}, id="later")).id == "later"


BAD: dict[str, tuple[Any, int, str]] = {
    "a type": ({"id": "seven"}, 3, "at $.id: 'seven' is not of type integer"),
    "a missing one": ({}, 3, "'id' is missing"),
    "an unknown one": ([{"id": 1}, None, "", 4], 2, "it takes 3 of them"),
    "a field": ({"order": {"id": 1, "lines": [{"count": 1}]}}, 2, "at $.order.lines[0]: 'sku' is missing"),
    "an enum": ({"order": {"id": 1, "size": "huge"}}, 2, "'huge' is none of"),
    "a time": ({"order": {"id": 1, "due": "soon"}}, 2, "does not have the format date"),
    "a model": ({"order": {"id": 1}, "address": {}}, 2, "'city' is missing"),
    "no arguments": ("seven", 3, "give the arguments of named_order by name"),
    "no JSON": ({"id": object()}, 3, "plain JSON"),
}


@pytest.mark.parametrize("what", BAD)
async def test_arguments_that_do_not_fit_are_refused(memory_place: Place, what: str) -> None:
    """Before anything is written, with the place of the mistake."""
    arguments, version, complaint = BAD[what]
    async with memory_place.engine() as engine:
        with pytest.raises((InvalidArgumentError, TypeError)) as caught:
            await engine.start("named_order", arguments, version=version)
        assert complaint in str(caught.value)
        assert await engine.count(workflow="named_order") == 0


async def test_an_unknown_workflow_is_named_with_those_that_are_near(memory_place: Place) -> None:
    """Or with its versions."""
    async with memory_place.engine() as engine:
        with pytest.raises(UnknownWorkflowError, match="did you mean named_order"):
            await engine.start("named_ordr", {"id": 1})
        with pytest.raises(UnknownWorkflowError, match="in version 9; give one of its versions: 2, 3"):
            await engine.start("named_order", {"id": 1}, version=9)
        with pytest.raises(UnknownWorkflowError, match=r"engine\.workflows\.list\(\) shows"):
            await engine.start("zzz")


async def test_descriptions_of_workflows_are_written_once_and_added_to(memory_place: Place) -> None:
    """A worker with other code adds its descriptions, and a worker with the same code writes nothing."""
    async with memory_place.engine(worker=False) as engine:
        store = store_of(engine)
        held = [b""]

        async def look() -> bytes:
            return await store.change_cell(WORKFLOWS_CELL, lambda held, _: (held or b"", held or b""))

        await Describer(store, registry_of(named_order)).describe()
        held.append(await look())
        await Describer(store, registry_of(named_order)).describe()
        held.append(await look())
        await Describer(store, registry_of(named_order_3)).describe()
        held.append(await look())
        assert b"named_order@2" in held[1] == held[2] != held[3]
        assert b"named_order@2" in held[3]
        assert b"named_order@3" in held[3]
        await store.change_cell(WORKFLOWS_CELL, lambda *_: (b"nonsense", None))
        await Describer(store, registry_of(named_order)).describe()
        assert b"named_order@2" in await look()


async def test_a_worker_describes_its_workflows_in_a_moment(
    memory_place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its start; if the store is away then, later."""
    async with stranger(memory_place) as engine:
        store, calls = store_of(engine), []

        async def away(*_: Any) -> None:
            calls.append("away")
            raise StoreUnavailableError("memory:", "it is away")

        describer = Describer(store, registry_of(named_order))
        with monkeypatch.context() as patched:
            patched.setattr(store, "change_cell", away, raising=False)
            patched.setattr("outlive._kernel.client.definitions.AGAIN_SECONDS", 0)
            describer.start(0)

            async def has_tried() -> bool:
                return len(calls) > 1

            await until(has_tried)

        async def is_known() -> bool:
            return any(it.name == "named_order" for it in await engine.workflows.list())

        await until(is_known)
        describer.close()
        describer.close()
