"""Random scripts: an author that writes one operation after the other, in the words of `words`."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from outlive._kernel.model.checkpoint import NUMBER_MAX
from outlive._kernel.model.run import STORED
from outlive._kernel.store.contract import MessageKind
from proof.differential.changes import QUEUE, SLEEP_MICROSECONDS
from proof.differential.oracle import Oracle
from proof.differential.streams import WRITER_MARKS
from proof.differential.words import (
    ASKED,
    STREAMS,
    Gaze,
    Letter,
    Line,
    Mark,
    NewTree,
    Operation,
    Say,
    Turn,
    Write,
)

IDS = ("a", "b", "c", "d")
WORKERS = ("w1", "w2", "w3")
KEYS = ("", "", "", "k1", "k2")
TAGS: tuple[dict[str, str], ...] = ({}, {}, {"colour": "red"}, {"colour": "red", "size": "x"}, {"size": "x"})
MOVES = ("step",) * 3 + ("suspend", "sleep", "sleep", "park", "resume", "release", "spawn", "end", "publish", "ask")
ENDINGS = ("succeed", "fail", "cancel", "time out")
VERSIONS = (1, 1, 1, 2)
CELLS = ("gate", "Gate", "gate ", "")
HELD = (b"", b"open", b"\x00\xff", b"+")
"""What cells are made to hold."""
MARKED = ("a", "A", "b", "a~1")
"""Ids of runs that have checkpoints, be there such a run or not."""
SEQUENCES = (0, 1, 2, 3, 10, NUMBER_MAX)
OUTPUTS = (None, b"", b"\x00", b"done")


RARELY_FOUND = ("queue", "sleeps", "asks", "overdue_at")
"""Filters that few runs of a script pass."""


class Author:
    """Writes the next operation, with an eye on how things stand."""

    def __init__(self, seed: str, oracle: Oracle) -> None:
        self._random = Random(seed)
        self._random_of_lists = Random(f"{seed} lists")
        """A list changes nothing, so what it asks for must not change what happens after it."""
        self._talk = Random(f"{seed} talk")
        self._purges = Random(f"{seed} purges")
        self._ghosts = Random(f"{seed} ghosts")
        self._oracle = oracle
        self._trees = 0
        self._names = 0
        self._numbers = 0
        self._says: list[Say] = []
        self._marks: list[Mark] = []

    def next(self) -> Operation:
        """Something that may happen now."""
        verbs = {
            "create": 8,
            "write": 16,
            "batch": 6,
            "go on": 3,
            "replace": 3,
            "transact": 5,
            "forget": 8,
            "deliver": 9,
            "claim": 12,
            "hire": 7,
            "retire": 1,
            "beat": 2,
            "advance": 5,
            "put blobs": 1,
            "turn": 4,
            "append": 5,
            "clear": 3,
            "list": 12,
            "read": 8,
        }
        if self._purges.random() < 0.02:
            return self._delete()
        if self._talk.random() < 0.2:
            return self._talk.choice((self._say, self._say, self._refuse, self._gaze, self._retry))()
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
        return self._random.choice([*IDS, *known[-6:], "unknown"])

    def _any_tree(self, *, is_open: bool = True) -> int:
        trees = self._oracle.world.trees
        numbers = [tree.runs[0].nonce for tree in trees.values() if not (is_open and tree.has_ended)]
        return self._random.choice(numbers) if numbers else self._random.randint(1, 3)

    def _tree(self, *, id: str = "", aside: tuple[int, str] | None = None, successor_of: int = 0) -> NewTree:
        self._trees += 1
        choose = self._random.choice
        return NewTree(
            self._trees,
            id or choose([*IDS, f"r{self._trees}", f"r{self._trees}"]),
            choose(VERSIONS),
            choose(["", *WORKERS]),
            choose(TAGS),
            aside,
            successor_of,
            self._some(1),
            self._chance(0.2),
            bool(successor_of) and self._trees % 3 == 0,
        )

    def _letter(self) -> Letter:
        self._names += 1
        kinds = [MessageKind.SIGNAL] * 3 + list(MessageKind)
        choose = self._random.choice
        blob = self._random.randrange(6) if self._chance(0.2) else None
        runs = [run for _, run in self._oracle.world.each_run()]
        children = [run.id for run in runs if run.number and not run.status.is_terminal]
        to = choose(children) if children and self._chance(0.25) else self._any_id()
        return Letter(to, f"m{self._names}", choose(kinds), choose(KEYS), blob)

    def _write_of(self, tree: int, *, may_send: bool = True) -> Write:
        random = self._random
        moves = tuple(random.choice(MOVES) for _ in range(random.randint(1, 3)))
        if self._chance(0.08):
            moves = (*moves, random.choice(ENDINGS))
        if self._chance(0.08):
            moves = ("forget", *moves)
        # What a watch has sent has no name.
        named = [
            (each, message.name) for each in self._oracle.world.trees.values() for message in each.inbox if message.name
        ]
        waiting = [name for _, name in named]
        own = [name for each, name in named if each.runs[0].nonce == tree]
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
            keeps=random.choice([0, 0, 1, 2]) if "forget" in moves else 0,
            is_guarded=self._chance(0.8 if "forget" in moves else 0.2),
            answers=self._answers(tree),
            lines=tuple(self._line(is_numbered=True) for _ in range(self._talk.choice([0, 0, 0, 1, 3]))),
            names=self._ghosts.choice(("another", "none", "earlier")) if self._ghosts.random() < 0.08 else "",
        )

    def _free_name(self, id: str) -> str:
        """Mostly a name that no run has."""
        self._names += 1
        return self._random.choice(IDS) if self._chance(0.1) else f"{id.partition('.')[0]}.{self._names}"

    def _endless(self, write: Write) -> Write:
        """Without an end, if there are watches: whom their messages reach would depend on the order, too."""
        if not self._oracle.world.watches:
            return write
        return replace(write, moves=tuple(move for move in write.moves if move not in ENDINGS) or ("step",))

    def _answers(self, tree: int) -> tuple[tuple[str, int], ...]:
        """To messages that the tree has seen, mostly."""
        trees = self._oracle.world.trees.values()
        keys = sorted(key for each in trees if each.runs[0].nonce == tree for key in each.keys)
        count = self._talk.choice([0, 0, 0, 1, 2])
        chosen = dict.fromkeys(self._talk.choice([*keys, *keys, *ASKED]) for _ in range(count))
        return tuple((key, self._talk.randrange(4)) for key in chosen)

    def _line(self, *, is_numbered: bool = False) -> Line:
        """Short or long, of a root or of a child that may be there; those of workflows have numbers that rise."""
        talk = self._talk
        self._numbers += talk.choice([0, 1, 1, 2]) if is_numbered else 0
        return Line(
            talk.choice(STREAMS),
            talk.choice("abc"),
            run=talk.choice([0, 0, 0, 1]),
            count=talk.choice([1, 1, 3]),
            times=talk.choice([1, 1, 30, 470, 1_200]),
            head=talk.choice("hhhH"),
            number=max(1, self._numbers - talk.choice([0, 0, 2, 9])) if is_numbered else 0,
        )

    # -- Operations ----------------------------------------------------------------------------------------

    def _create(self) -> Operation:
        return Operation("commit", (self._tree(),))

    def _write(self) -> Operation:
        return Operation("commit", (self._write_of(self._any_tree(is_open=self._chance(0.9))),))

    def _batch(self) -> Operation:
        """Without letters: whom they reach would depend on the order in which a batch is written."""
        changes: list[NewTree | Write] = [
            self._endless(self._write_of(self._any_tree(), may_send=False)) for _ in range(self._random.randint(2, 4))
        ]
        if self._chance(0.4):
            changes.insert(self._random.randrange(len(changes)), self._tree())
        if self._chance(0.3):
            changes.append(self._continuation())
        # No key is answered twice in a call.
        rest = [replace(it, answers=()) if isinstance(it, Write) else it for it in changes[1:]]
        return Operation("commit", (changes[0], *rest))

    def _continuation(self, *, may_send: bool = False) -> Write:
        tree = self._any_tree()
        roots = [each.runs[0] for each in self._oracle.world.trees.values()]
        id = next((root.id for root in roots if root.nonce == tree), "a")
        aside = None if self._chance(0.05) else (tree, self._free_name(id))
        successor = self._tree(id=id, aside=aside, successor_of=tree)
        write = self._write_of(tree, may_send=may_send)
        starts = [*write.starts, successor]
        self._random.shuffle(starts)
        return replace(write, moves=(*write.moves[:2], "go on"), starts=tuple(starts))

    def _go_on(self) -> Operation:
        return Operation("commit", (self._continuation(may_send=True),))

    def _replace(self) -> Operation:
        """A new run in the place of one that may have ended, or is ended for it."""
        tree = self._any_tree(is_open=False)
        roots = [each.runs[0] for each in self._oracle.world.trees.values()]
        id = next((root.id for root in roots if root.nonce == tree), "a")
        successor_of = tree if self._chance(0.5) else 0
        new = self._tree(id=id, aside=(tree, self._free_name(id)), successor_of=successor_of)
        closing = (Write(tree, ("cancel",)),) if self._chance(0.5) else ()
        return Operation("commit", (*closing, new))

    def _transact(self) -> Operation:
        self._names += 1
        write = self._write_of(self._any_tree())
        more = (Write(write.tree, lag=len(write.moves)),) if self._chance(0.3) else ()
        verb = "roll back" if self._chance(0.15) else "transact"
        behind = self._random.choice([(), (), (1,), (1,), (0,)])
        return Operation(verb, (write, *more), name=f"n{self._names}", numbers=behind)

    def _forget(self) -> Operation:
        """A snapshot, mostly of a tree that has something to forget; or one that comes too late."""
        random = self._random
        is_ended = self._chance(0.15)
        trees = [tree for tree in self._oracle.world.trees.values() if tree.has_ended is is_ended]
        parents = [tree for tree in trees if len(tree.runs) > 1]
        number = self._any_tree()
        if trees and self._chance(0.5):
            number = random.choice(parents or trees).runs[0].nonce
        lag = random.choice([0] * 10 + [-1, 1])
        if trees and self._chance(0.2):
            # By one event, which may be the claim of another worker, or by all that stand before another snapshot.
            late = random.choice([tree for tree in trees if tree.rows[0][0]] or trees)
            number, lag = late.runs[0].nonce, random.choice([-1, -random.randint(0, 2) - len(late.rows)])
        before = random.choice([(), ("step",), ("end",), ("end",), ("end", "end"), ("spawn", "end")])
        after = random.choice([(), (), (), ("step",), ("sleep",), ("suspend",), ("spawn",), ("step", "forget")])
        write = replace(
            self._write_of(number),
            moves=(*before, "forget", *after),
            lag=lag,
            keeps=random.choice([0] * 5 + [1, 2]),
            is_guarded=self._chance(0.8),
        )
        if self._chance(0.7):
            return Operation("commit", (write,))
        # Another one behind it, or one that wants its place; without letters, as in every batch.
        more = replace(self._write_of(number, may_send=False), answers=())
        place = random.choice([len(write.moves), len(write.moves), 0])
        return Operation("commit", (replace(write, letters=()), replace(more, lag=place)))

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
        statuses = tuple(random.sample(list(STORED), random.choice([0, 0, 0, 1, 3])))
        filters = tuple(random.choice([0, 0, 0, 1]) for _ in range(5))
        numbers = (random.choice([1, 2, 5, 100]), *filters)
        return Operation(
            "list", ids=(self._any_id(),), worker=random.choice(["", *WORKERS]), numbers=numbers, statuses=statuses,
            tags=random.choice(TAGS), finds=self._finds(),
        )  # fmt: skip

    def _finds(self) -> dict[str, str]:
        """Some of the filters that are a text or an instant, mostly one that finds something; and the order."""
        random = self._random_of_lists
        runs = [run for _, run in self._oracle.world.each_run()]
        created = [str(run.created_at) for run in runs] or ["0"]
        finished = [str(run.finished_at) for run in runs if run.finished_at] or ["0"]
        choices = {
            "id_prefix": ["", "a", "a~", "b", "c.", "z"],
            "error": ["Broken", "app.Broken", "broken", "Odd"],
            "waiting_for": ["go", "go", "stop"],
            "since_at": created,
            "until_at": created,
            "queue": ["", QUEUE],
            "version": ["1", "2", "3"],
            "ids": ["a", "a b c", "c unknown", " ".join(run.id for run in runs[-3:]) or "d"],
            "finished_since_at": finished,
            "finished_until_at": [*finished, str(int(finished[-1]) + 1)],
            "hides_internal": ["yes"],
            "sleeps": ["yes"],
            "asks": ["", "ann", "bob"],
            "overdue_at": [str(int(at) + SLEEP_MICROSECONDS + 1) for at in created],
            "oldest": ["yes"],
        }
        # Few at a time: many together find nothing. Often a filter that few runs pass.
        names = [*choices, *RARELY_FOUND * 3]
        return {name: random.choice(choices[name]) for name in random.sample(names, random.choice([0, 1, 1, 2]))}

    def _read(self) -> Operation:
        """From the beginning of a journal, or about its end."""
        random, tree = self._random, self._any_tree(is_open=False)
        ids = tuple(self._any_id() for _ in range(3))
        tails = [each.tail for each in self._oracle.world.trees.values() if each.runs[0].nonce == tree]
        after = random.choice([random.randint(-1, 4), max([-1, *tails]) - random.randint(-1, 2)])
        return Operation("read", ids=ids, numbers=(tree, max(-1, after), random.choice([1, 2, 100])))

    def _turn(self) -> Operation:
        """One to three cells at once, or one cell by up to four who each add to it."""
        random = self._random
        if self._chance(0.3):
            return Operation("turn", turns=(Turn(random.choice(CELLS)),) * random.randint(2, 4))
        return Operation("turn", turns=tuple(map(self._turn_of, random.sample(CELLS, random.randint(1, 3)))))

    def _turn_of(self, cell: str) -> Turn:
        random = self._random
        held = self._oracle.shelf.cells.get(cell)
        expects: tuple[bytes | None, ...] = random.choice([(), (held,), random.choice([(None,), HELD])])
        return Turn(cell, random.choice([None, *HELD]), expects)

    def _append(self) -> Operation:
        """A new checkpoint, one that was there before, one in its place; or two at once."""
        random = self._random
        marks = [self._mark() for _ in range(random.choice([1, 1, 2]))]
        if self._marks and self._chance(0.6):
            known = random.choice(self._marks[-12:])
            others = (replace(known, state="B"), replace(known, token=3), replace(known, output=random.choice(OUTPUTS)))
            marks[0] = random.choice([known, random.choice(others)])
        if len({(mark.run, mark.sequence) for mark in marks}) < len(marks) or self._chance(0.1):
            marks = marks[:1] * 2
        self._marks += marks
        return Operation("append", marks=tuple(marks))

    def _mark(self) -> Mark:
        choose = self._random.choice
        return Mark(choose(MARKED), choose(SEQUENCES), token=choose([1, 2]), output=choose(OUTPUTS))

    def _clear(self) -> Operation:
        return Operation("clear", ids=(self._random.choice([*MARKED, "unknown"]),))

    def _say(self) -> Operation:
        """What steps say: something new, the same again, or what came too late."""
        talk = self._talk
        says = list[Say]()
        for _ in range(talk.choice([1, 1, 2])):
            mark = talk.choice([1, 1, 2]) * WRITER_MARKS + 1 + len(self._says)
            tree = self._says[-1].tree if self._says and talk.random() < 0.6 else self._any_tree()
            says.append(Say(tree, (self._line(),) * talk.choice([1, 1, 2]), mark))
        if self._says and talk.random() < 0.4:
            says = [talk.choice(self._says[-8:])]
        if talk.random() < 0.1:
            says[0] = replace(says[0], epochs_ago=1)
        if len({say.tree for say in says}) < len(says):
            says = says[:1]
        self._says += says
        return Operation("say", says=tuple(says), is_narrow=talk.random() < 0.15)

    def _refuse(self) -> Operation:
        """Messages that wait, mostly of a tree of the worker that refuses them."""
        talk, trees = self._talk, self._oracle.world.trees.values()
        inbox = [(tree, message.name) for tree in trees for message in tree.inbox if message.name and message.key]
        owned = [(tree, name) for tree, name in inbox if tree.runs[0].owner]
        chosen = talk.sample(owned or inbox, min(len(owned or inbox), talk.choice([1, 2])))
        owner = chosen[0][0].runs[0].owner if chosen else ""
        worker = owner if owner and talk.random() < 0.8 else talk.choice(WORKERS)
        return Operation("refuse", worker=worker, ids=tuple(name for _, name in chosen) or ("m1",), numbers=(1,))

    def _delete(self) -> Operation:
        """Trees that have ended, mostly, some of them too short a time ago."""
        chance, trees = self._purges, self._oracle.world.trees.values()
        ended = [tree.runs[0].nonce for tree in trees if tree.has_ended]
        others = [tree.runs[0].nonce for tree in trees]
        chosen = chance.sample(ended, min(len(ended), chance.choice([1, 2, 4])))
        chosen += chance.sample(others, min(len(others), chance.choice([0, 0, 1, 2])))
        return Operation("delete", numbers=(chance.choice([0, 0, 1, 20]), *chosen, *chance.sample([1, 2], 1)))

    def _gaze(self) -> Operation:
        """Watches of runs, mostly of open ones."""
        talk = self._talk
        roots = [tree.runs[0].id for tree in self._oracle.world.trees.values() if not tree.has_ended]
        gazes = []
        for _ in range(talk.choice([1, 2])):
            self._names += 1
            run = talk.choice(roots) if roots and talk.random() < 0.8 else self._any_id()
            watcher = talk.choice(roots) if roots and talk.random() < 0.8 else self._any_id()
            gazes.append(Gaze(run, watcher, talk.choice([f"e{self._names}"] * 4 + ["k1"])))
        return Operation("gaze", gazes=tuple(gazes))

    def _retry(self) -> Operation:
        """A tree that has ended goes on, mostly; without letters, as it may be watched."""
        talk = self._talk
        ended = [tree.runs[0].nonce for tree in self._oracle.world.trees.values() if tree.has_ended]
        tree = talk.choice(ended) if ended and talk.random() < 0.9 else self._any_tree()
        write = self._write_of(tree, may_send=False)
        moves = ("retry", *(move for move in write.moves if move in {"step", "sleep", "suspend", "spawn"}))
        lag = talk.choice([0] * 8 + [-1])
        keys = [key for it in self._oracle.world.trees.values() if it.runs[0].nonce == tree for key in sorted(it.keys)]
        freed = tuple(talk.sample([*keys, *ASKED][:3], talk.choice([0, 1, 2])))
        return Operation("commit", (replace(write, moves=moves, reopens=True, freed=freed, lag=lag, keeps=0),))
