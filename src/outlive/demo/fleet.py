"""The worker processes of the demo: started together, watched, and gone at the end whatever happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Self

from outlive.demo import world
from outlive.testing.child_process import ChildProcess, end_all


class WorkerLost(Exception):
    """A worker ended that was not killed; its last words are in the message."""


class Member(ChildProcess):
    """One worker process with a name for people."""

    def __init__(self, name: str, url: str, folder: Path) -> None:
        self.name = name
        super().__init__(
            "outlive.demo.worker",
            url,
            log=folder / f"worker-{name}.log",
            env={world.PLACE: str(folder / "world.jsonl")},
        )

    async def ready(self) -> None:
        """Wait until it has opened the store.

        Raises:
            WorkerLost: it ended before that.
        """
        if not await asyncio.to_thread(self.read_line):
            self.wait(1)
            self.check()

    def check(self) -> None:
        """Complain if it ended by itself.

        Raises:
            WorkerLost: it did.
        """
        if self.killed_at is None and self.exit_code is not None:
            raise WorkerLost(f"worker {self.name} ended with code {self.exit_code}\n{self.last_words()}")


class Fleet:
    """All worker processes; leaving the `with` block ends them."""

    def __init__(self, url: str, folder: Path, *, size: int) -> None:
        self._url, self._folder, self._size = url, folder, size
        self.members: list[Member] = []

    def __enter__(self) -> Self:
        """Start them."""
        try:
            for number in range(self._size):
                self.members.append(Member(chr(ord("A") + number), self._url, self._folder))
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End them, all at once."""
        end_all([*self.members])

    async def ready(self) -> None:
        """Wait until all have opened the store."""
        await asyncio.gather(*(member.ready() for member in self.members))

    def check(self) -> None:
        """Complain if one ended that was not killed."""
        for member in self.members:
            member.check()

    def replace(self, member: Member) -> Member:
        """Start another worker in the place of one that is gone."""
        following = Member(member.name, self._url, self._folder)
        self.members[self.members.index(member)] = following
        return following

    def find(self, pid: int) -> Member | None:
        """The living worker with this process id."""
        return next((it for it in self.members if it.pid == pid and it.killed_at is None), None)
