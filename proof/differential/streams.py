"""Streams as the contract has them, without any fast way: what a script says, and what the oracle keeps of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from outlive._kernel.store.streams import Appended, StreamLimits, StreamLine, StreamLines
from proof.differential.words import Line

CHUNK_BYTES = 960
WRITER_MARKS = 1 << 32
"""So many marks has each writer."""
ANY = StreamLimits(1_000, 1_000, 1_000_000)
FEW = StreamLimits(2, 6, 5_000)


@dataclass(frozen=True)
class Stream:
    """One stream: its chunks, and where it ends."""

    chunks: tuple[tuple[int, int, bytes], ...] = ()
    """The position of the first item, how many there are, and their lines."""
    position: int = 0
    items: int = 0
    size: int = 0
    mark: int = 0
    number: int = 0
    head: bytes = b""

    def inherited(self) -> Stream:
        """As the next generation has it."""
        return replace(self, items=0, size=0, mark=0, number=0)

    def has(self, mark: int) -> bool:
        """Whether an append with this mark, or a later one of the same writer, is there."""
        return mark // WRITER_MARKS == self.mark // WRITER_MARKS and mark <= self.mark

    def said(self, lines: Iterable[StreamLine], mark: int = 0) -> Stream:
        """With these lines, but for those of a workflow that are there."""
        it = replace(self, mark=mark or self.mark)
        for line in lines:
            if not line.number or line.number > it.number:
                it = it._with(line)
        return it

    def _with(self, line: StreamLine) -> Stream:
        *others, (first, count, body) = self.chunks or ((0, 0, b""),)
        more = line.body if line.head == self.head else line.head + line.body
        if self.chunks and len(body) + len(more) <= CHUNK_BYTES:
            chunks = (*others, (first, count + line.count, body + more))
        else:
            chunks = (*self.chunks, (self.position + 1, line.count, line.head + line.body))
        return replace(
            self,
            chunks=chunks,
            position=self.position + line.count,
            items=self.items + line.count,
            size=self.size + line.size,
            number=max(self.number, line.number),
            head=line.head,
        )


Streams = dict[tuple[int, str], Stream]
"""Of a tree, by the number of the run and the name."""


def appended(streams: Streams, said: StreamLines, mark: int, limits: StreamLimits) -> Appended:
    """Append what a step says, if there is room for it."""
    key = said.run, said.name
    own = streams.get(key, Stream())
    if own.has(mark):
        return Appended.APPENDED
    others = [stream for (run, name), stream in streams.items() if run == said.run and name != said.name]
    grown = own.said(said.lines, mark)
    items = sum(each.items for each in others) + own.items + sum(line.count for line in said.lines)
    size = sum(each.size for each in others) + own.size + sum(line.size for line in said.lines)
    if len(others) + 1 > limits.streams_max or items > limits.items_max or size > limits.bytes_max:
        return Appended.FULL
    streams[key] = grown
    return Appended.APPENDED


def lines_of(lines: Iterable[Line], there: Mapping[int, object]) -> list[StreamLines]:
    """What a script says on the streams of runs that are there, in its order."""
    said: dict[tuple[int, str], list[StreamLine]] = {}
    for line in lines:
        if line.run in there:
            body = line.text.encode() * line.times
            made = StreamLine(body, line.count, line.head.encode(), len(body), line.number)
            said.setdefault((line.run, line.stream), []).append(made)
    return [StreamLines(run=run, name=name, lines=tuple(each)) for (run, name), each in said.items()]
