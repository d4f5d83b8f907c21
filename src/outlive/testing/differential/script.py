"""Random scripts: what is done to all stores, as plain data that can be printed, shortened and played again.

A script names trees by numbers of its own (they become the nonces), runs by id and messages by name, because handles
and message ids are each store's own affair. What depends on the state, like the events that a run can have next, is
decided when the operation is played, so that a script still makes sense when parts of it are taken out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import Enum
from random import Random

from outlive._model import RunStatus
from outlive._store.contract import MessageKind
from outlive.testing.differential.oracle import Oracle

IDS = ("a", "b", "c", "d")
WORKERS = ("w1", "w2", "w3")
KEYS = ("", "", "", "k1", "k2")
TAGS: tuple[dict[str, str], ...] = ({}, {}, {"colour": "red"}, {"colour": "red", "size": "x"}, {"size": "x"})
MOVES = ("step",) * 3 + ("suspend", "sleep", "sleep", "park", "resume", "release", "spawn", "end", "publish")
ENDINGS = ("succeed", "fail", "cancel", "time out")
VERSIONS = (1, 1, 1, 2)


def _code_of(value: object) -> str:
    """Python that makes the value again."""
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, tuple):
        return f"({''.join(f'{_code_of(each)}, ' for each in value)})"
    return repr(value)


class Part:
    """Prints what is not as it usually is."""

    def __repr__(self) -> str:
        told = [
            f"{each.name}={_code_of(getattr(self, each.name))}"
            for each in fields(self)  # type: ignore[arg-type]
            if getattr(self, each.name) not in (each.default, {}, ())
        ]
        return f"{type(self).__name__}({', '.join(told)})"


@dataclass(frozen=True, repr=False)
class NewTree(Part):
    """The root run of a new tree."""

    number: int
    id: str
    version: int = 1
    worker: str = ""
    tags: dict[str, str] = field(default_factory=dict)
    aside: tuple[int, str] | None = None
    """A tree that takes another name before."""
    heir_of: int = 0
    blobs: tuple[int, ...] = ()


@dataclass(frozen=True, repr=False)
class Letter(Part):
    """A message."""

    to: str
    name: str
    kind: MessageKind = MessageKind.SIGNAL
    key: str = ""
    blob: int | None = None


@dataclass(frozen=True, repr=False)
class Write(Part):
    """A change of a tree."""

    tree: int
    moves: tuple[str, ...] = ("step",)
    lag: int = 0
    """How far beside the end of the journal it is written."""
    consumed: tuple[str, ...] = ()
    blobs: tuple[int, ...] = ()
    items: tuple[tuple[int, int], ...] = ()
    starts: tuple[NewTree, ...] = ()
    letters: tuple[Letter, ...] = ()


@dataclass(frozen=True, repr=False)
class Operation(Part):
    """One thing to do."""

    verb: str
    changes: tuple[NewTree | Write, ...] = ()
    letters: tuple[Letter, ...] = ()
    start: NewTree | None = None
    worker: str = ""
    name: str = ""
    numbers: tuple[int, ...] = ()
    orphans: tuple[int, ...] = ()
    """Of a claim: how many orphans at most, and for how many seconds they are left alone; as many as there are and not
    at all when empty."""
    ids: tuple[str, ...] = ()
    statuses: tuple[RunStatus, ...] = ()
    tags: dict[str, str] = field(default_factory=dict)


class Author:
    """Writes the next operation, with an eye on how things stand."""

    def __init__(self, seed: str, oracle: Oracle) -> None:
        self._random = Random(seed)
        self._oracle = oracle
        self._trees = 0
        self._names = 0

    def next(self) -> Operation:
        """Something that may happen now."""
        verbs = {
            "create": 8,
            "write": 16,
            "batch": 6,
            "go on": 3,
            "replace": 3,
            "transact": 3,
            "deliver": 9,
            "claim": 12,
            "hire": 7,
            "retire": 1,
            "beat": 2,
            "advance": 5,
            "put blobs": 1,
            "list": 8,
            "read": 8,
        }
        (verb,) = self._random.choices(list(verbs), list(verbs.values()))
        operation: Operation = getattr(self, f"_{verb.replace(' ', '_')}")()
        return operation

    # -- Parts ---------------------------------------------------------------------------------------------

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _some(self, most: int) -> tuple[int, ...]:
        return tuple(self._random.randrange(6) for _ in range(self._random.randint(0, most)))

    def _any_id(self) -> str:
        """An id of the script, of any run that there is, or of none."""
        known = [run.id for _, run in self._oracle.world.each_run()]
        return self._random.choice([*IDS, *known[-6:], "nobody"])

    def _any_tree(self, *, is_open: bool = True) -> int:
        trees = self._oracle.world.trees
        numbers = [tree.runs[0].nonce for tree in trees.values() if not (is_open and tree.has_ended)]
        return self._random.choice(numbers) if numbers else self._random.randint(1, 3)

    def _tree(self, *, id: str = "", aside: tuple[int, str] | None = None, heir_of: int = 0) -> NewTree:
        self._trees += 1
        choose = self._random.choice
        return NewTree(
            self._trees,
            id or choose([*IDS, f"r{self._trees}", f"r{self._trees}"]),
            choose(VERSIONS),
            choose(["", *WORKERS]),
            choose(TAGS),
            aside,
            heir_of,
            self._some(1),
        )

    def _letter(self) -> Letter:
        self._names += 1
        kinds = [MessageKind.SIGNAL] * 4 + list(MessageKind)
        choose = self._random.choice
        blob = self._random.randrange(6) if self._chance(0.2) else None
        return Letter(self._any_id(), f"m{self._names}", choose(kinds), choose(KEYS), blob)

    def _write_of(self, tree: int, *, may_send: bool = True) -> Write:
        random = self._random
        moves = tuple(random.choice(MOVES) for _ in range(random.randint(1, 3)))
        if self._chance(0.08):
            moves = (*moves, random.choice(ENDINGS))
        waiting = [mail.name for each in self._oracle.world.trees.values() for mail in each.inbox]
        own = [
            mail.name for each in self._oracle.world.trees.values() if each.runs[0].nonce == tree for mail in each.inbox
        ]
        consumed = own[: random.randint(0, 2)] if self._chance(0.9) else random.sample(waiting, min(2, len(waiting)))
        return Write(
            tree,
            moves,
            lag=random.choice([0] * 12 + [-1, 1]),
            consumed=tuple(consumed),
            blobs=self._some(1),
            items=tuple((random.randint(0, 1), random.randrange(5)) for _ in range(random.choice([0, 0, 1, 2]))),
            starts=tuple(self._tree() for _ in range(random.choice([0, 0, 0, 0, 1, 2]))),
            letters=tuple(self._letter() for _ in range(random.choice([0, 0, 0, 1, 2]))) if may_send else (),
        )

    def _free_name(self, id: str) -> str:
        """Mostly a name that nobody has."""
        self._names += 1
        return self._random.choice(IDS) if self._chance(0.1) else f"{id.partition('.')[0]}.{self._names}"

    # -- Operations ----------------------------------------------------------------------------------------

    def _create(self) -> Operation:
        return Operation("commit", (self._tree(),))

    def _write(self) -> Operation:
        return Operation("commit", (self._write_of(self._any_tree(is_open=self._chance(0.9))),))

    def _batch(self) -> Operation:
        """Without letters: whom they reach would depend on the order in which a batch is written."""
        changes: list[NewTree | Write] = [
            self._write_of(self._any_tree(), may_send=False) for _ in range(self._random.randint(2, 4))
        ]
        if self._chance(0.4):
            changes.insert(self._random.randrange(len(changes)), self._tree())
        if self._chance(0.3):
            changes.append(self._continuation())
        return Operation("commit", tuple(changes))

    def _continuation(self, *, may_send: bool = False) -> Write:
        tree = self._any_tree()
        roots = [each.runs[0] for each in self._oracle.world.trees.values()]
        id = next((root.id for root in roots if root.nonce == tree), "a")
        aside = None if self._chance(0.05) else (tree, self._free_name(id))
        heir = self._tree(id=id, aside=aside, heir_of=tree)
        write = self._write_of(tree, may_send=may_send)
        starts = [*write.starts, heir]
        self._random.shuffle(starts)
        return replace(write, moves=(*write.moves[:2], "go on"), starts=tuple(starts))

    def _go_on(self) -> Operation:
        return Operation("commit", (self._continuation(may_send=True),))

    def _replace(self) -> Operation:
        """A new run in the place of one that may have ended, or is ended for it."""
        tree = self._any_tree(is_open=False)
        roots = [each.runs[0] for each in self._oracle.world.trees.values()]
        id = next((root.id for root in roots if root.nonce == tree), "a")
        heir_of = tree if self._chance(0.5) else 0
        new = self._tree(id=id, aside=(tree, self._free_name(id)), heir_of=heir_of)
        closing = (Write(tree, ("cancel",)),) if self._chance(0.5) else ()
        return Operation("commit", (*closing, new))

    def _transact(self) -> Operation:
        self._names += 1
        write = self._write_of(self._any_tree())
        more = (Write(write.tree, lag=len(write.moves)),) if self._chance(0.3) else ()
        verb = "roll back" if self._chance(0.15) else "transact"
        return Operation(verb, (write, *more), name=f"n{self._names}")

    def _deliver(self) -> Operation:
        letters = tuple(self._letter() for _ in range(self._random.randint(1, 3)))
        start = self._tree() if self._chance(0.2) else None
        return Operation("deliver", letters=letters, start=start, numbers=(self._random.choice([2, 3, 100]),))

    def _claim(self) -> Operation:
        versions = self._random.choice([(1,), (1, 2), (1, 2), (2,), ()])
        orphans = (self._random.choice([0, 1, 2, 100]), self._random.choice([0, 0, 5])) if self._chance(0.5) else ()
        numbers = (self._random.choice([1, 2, 100]), *versions)
        return Operation("claim", worker=self._random.choice(WORKERS), numbers=numbers, orphans=orphans)

    def _hire(self) -> Operation:
        return Operation("hire", worker=self._random.choice(WORKERS), numbers=(self._random.choice([5, 30, 30]),))

    def _retire(self) -> Operation:
        return Operation("retire", worker=self._random.choice(WORKERS))

    def _beat(self) -> Operation:
        return Operation("beat", worker=self._random.choice(WORKERS))

    def _advance(self) -> Operation:
        return Operation("advance", numbers=(self._random.choice([1, 1, 1, 6, 10, 20]),))

    def _put_blobs(self) -> Operation:
        return Operation("put blobs", numbers=self._some(3))

    def _list(self) -> Operation:
        """A page of runs: limit, whether roots only, and which filters are on."""
        random = self._random
        statuses = tuple(random.sample(list(RunStatus), random.choice([0, 0, 0, 1, 3])))
        filters = tuple(random.choice([0, 0, 0, 1]) for _ in range(5))
        numbers = (random.choice([1, 2, 5, 100]), *filters)
        return Operation(
            "list", ids=(self._any_id(),), worker=random.choice(["", *WORKERS]), numbers=numbers, statuses=statuses,
            tags=random.choice(TAGS),
        )  # fmt: skip

    def _read(self) -> Operation:
        ids = tuple(self._any_id() for _ in range(3))
        after, limit = self._random.randint(-1, 4), self._random.choice([1, 2, 100])
        return Operation("read", ids=ids, numbers=(self._any_tree(is_open=False), after, limit))
