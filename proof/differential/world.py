"""What lies in a store: journals with all that hangs on them, and blobs."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field

from outlive._kernel.journal.codec import Row
from outlive._kernel.model import Run
from outlive._kernel.store.contract import Answer, InboxMessage, ItemResult
from proof.differential.streams import Streams


@dataclass
class Tree:
    """A journal and what hangs on it."""

    rows: list[Row] = field(default_factory=list)
    runs: dict[int, Run] = field(default_factory=dict)
    inbox: list[InboxMessage] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    items: dict[tuple[int, int], ItemResult] = field(default_factory=dict)
    births: int = 0
    """The highest number that a child has had."""
    answers: dict[str, Answer] = field(default_factory=dict)
    """By the keys of messages."""
    streams: Streams = field(default_factory=dict)

    @property
    def tail(self) -> int:
        """The seq of its last event."""
        return self.rows[-1][0] if self.rows else -1

    @property
    def has_ended(self) -> bool:
        """Whether its root run has."""
        return self.runs[0].status.is_terminal

    def __copy__(self) -> Tree:
        rows, runs, inbox, items = list(self.rows), dict(self.runs), list(self.inbox), dict(self.items)
        answers, streams = dict(self.answers), dict(self.streams)
        return Tree(rows, runs, inbox, set(self.keys), items, self.births, answers, streams)


@dataclass
class World:
    """All trees by number, all blobs and watches, and how many messages there have been."""

    trees: dict[int, Tree] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    messages: int = 0
    watches: dict[tuple[str, str], str] = field(default_factory=dict)
    """The key of each watch, by the id of the run and that of the watcher."""

    def __copy__(self) -> World:
        trees = {key: copy.copy(tree) for key, tree in self.trees.items()}
        return World(trees, dict(self.blobs), self.messages, dict(self.watches))

    def each_run(self) -> Iterator[tuple[int, Run]]:
        """Every run with the number of its tree."""
        return ((journal, run) for journal, tree in self.trees.items() for run in tree.runs.values())

    def find(self, run_id: str) -> tuple[int, Run] | None:
        """The run with this id, and the number of its tree."""
        return next((found for found in self.each_run() if found[1].id == run_id), None)
