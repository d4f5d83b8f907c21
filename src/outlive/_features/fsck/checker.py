"""All trees of a store, a few at a time, and their repair."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import replace

import msgspec

from outlive._features.fsck.problem import REPAIRABLE, Kind, Problem
from outlive._features.fsck.reading import Reading, checksum_of
from outlive._features.fsck.tree_problems import differences, judge, root_id_of, root_row
from outlive._features.schedules.schedule import schedule_in
from outlive._kernel.journal.checkpoint import open_checkpoint
from outlive._kernel.journal.codec import Row, nonce_in
from outlive._kernel.journal.stream import open_lines
from outlive._kernel.model import RunStatus, WaitKind
from outlive._kernel.store.contract import Store, WorkerInfo
from outlive._kernel.store.examine import HANDLE_MIN, Repair, RunRow, TreeRows
from outlive.errors import StoreUnavailableError, UnreadableError
from outlive.errors.store import CorruptCheckpointError, FormatTooNewError

TREES_MAX = 100
"""Trees that are looked at together, and ids of checkpoints that are listed at once."""
ROWS_MAX = 2_000
"""Events that are read at once."""
BLOBS_MAX = 16
"""Blobs that are read at once; each may be as large as `payload_bytes_max`."""
LOOKS_MAX = 10
"""A tree that moves is looked at again this often."""


async def check_store(store: Store) -> list[Problem]:
    """Look at everything in the store; empty if it is whole."""
    return [problem async for problem in Checker(store).problems()]


class Checker:
    """Looks at one store, once."""

    def __init__(self, store: Store, *, repair: bool = False) -> None:
        self._store = store
        self._examiner = store.examiner
        self._repairs = repair
        self._workers: set[str] = set()
        self.trees = 0
        """How many it has looked at."""
        self.runs = 0
        self.events = 0

    async def problems(self) -> AsyncIterator[Problem]:
        """All that is wrong, tree by tree, then checkpoints and schedules; with `repair`, also what was wrong."""
        for line in await self._examiner.check_database():
            yield Problem("", line, kind=Kind.DATABASE)
        for worker in await self._ask_workers():
            if worker.fault:
                yield Problem("", f"the row of worker {worker.id} is damaged: {worker.fault}", kind=Kind.DATABASE)
        after = HANDLE_MIN
        while page := await self._examiner.list_journals(after=after, limit=TREES_MAX):
            for tree, rows in await self._read_page(await self._examiner.examine(page)):
                self.trees, self.runs = self.trees + 1, self.runs + len(tree.runs)
                self.events += tree.count
                for problem in await self._check(tree, rows):
                    yield problem
            after = page[-1]
        async for problem in find_damaged_checkpoints(self._store):
            yield problem
        async for problem in find_damaged_schedules(self._store):
            yield problem

    async def _ask_workers(self) -> list[WorkerInfo]:
        workers = await self._store.list_workers()
        self._workers = {worker.id for worker in workers}
        return workers

    async def _read_page(self, trees: list[TreeRows]) -> list[tuple[TreeRows, list[Row] | None]]:
        """Trees with their journals, as far as these are short; most of them are."""
        short: list[int] = []
        left = ROWS_MAX
        for tree in trees:
            if tree.count <= left:
                short.append(tree.journal)
                left -= tree.count
        journals = await self._store.read_journals(short)
        return [(tree, journals.get(tree.journal)) for tree in trees]

    # -- One tree --------------------------------------------------------------------------------------------

    async def _check(self, tree: TreeRows, rows: list[Row] | None) -> list[Problem]:
        """The problems of a tree that every look finds again."""
        problems: list[Problem] = []
        for look in range(LOOKS_MAX):
            reading = await self._read(tree, rows)
            found = await self._judge(tree, reading)
            problems = found if look == 0 else [problem for problem in found if problem in problems]
            if not problems:
                return []
            (again,) = await self._examiner.examine([tree.journal])
            if msgspec.json.encode(again) == msgspec.json.encode(tree):
                return await self._repair(tree, reading, problems) if self._repairs else problems
            tree, rows = again, None
        return problems

    async def _read(self, tree: TreeRows, rows: list[Row] | None) -> Reading:
        if rows is None and tree.tail >= 0:
            rows = await self._store.read_journal(tree.journal, limit=ROWS_MAX)
        root = root_row(tree)
        nonce = 0 if root is None or root.run is None else root.run.nonce
        # Every checksum hangs on the nonce. If the row has another one than the journal, the journal decides.
        own = nonce_in(rows[0]) if rows else None
        reading = Reading(root_id_of(tree), journal=tree.journal, nonce=nonce if own is None else own)
        after = -1
        while rows:
            for row in rows:
                if row[0] > tree.tail:
                    break
                reading.take(row)
            after = rows[-1][0]
            rows = (
                [] if after >= tree.tail else await self._store.read_journal(tree.journal, after=after, limit=ROWS_MAX)
            )
        reading.end(tree.tail)
        return reading

    async def _judge(self, tree: TreeRows, reading: Reading) -> list[Problem]:
        problems = list(judge(tree, reading, workers=self._workers, now_at=self._store.now()))
        if any(problem.kind is Kind.OWNER for problem in problems):
            await self._ask_workers()
            problems = list(judge(tree, reading, workers=self._workers, now_at=self._store.now()))
        problems += await self._find_lost_blobs(reading, reading.blobs)
        if reading.is_sound and reading.fold.runs and root_row(tree) is not None:
            problems += await self._find_damaged_rows(tree, reading)
            problems += await self._find_unheard_ends(tree, reading)
        return problems

    async def _find_lost_blobs(self, reading: Reading, blobs: Mapping[str, int | None]) -> list[Problem]:
        """Blobs that are missing or have another content; each is given with an event that refers to it."""
        problems: list[Problem] = []
        wanted = sorted(blobs)
        for start in range(0, len(wanted), BLOBS_MAX):
            ids = wanted[start : start + BLOBS_MAX]
            found = await self._store.get_blobs(ids)
            for id in ids:
                if id not in found or hashlib.sha256(found[id]).hexdigest() != id:
                    what = f"blob {id} is {'damaged' if id in found else 'missing'}"
                    problems.append(Problem(reading.root_id, what, blobs[id], Kind.BLOB, reading.journal))
        return problems

    async def _find_damaged_rows(self, tree: TreeRows, reading: Reading) -> list[Problem]:
        """Messages and outcomes of items that cannot be read, or say something else than the journal."""
        problems: list[Problem] = []
        if tree.inbox:
            inbox = (await self._store.read_inbox([tree.journal])).get(tree.journal, [])
            for message in (it for it in inbox if it.fault):
                what = f"message {message.id} cannot be read: {message.fault}"
                problems.append(Problem(reading.root_id, what, None, Kind.MAIL, tree.journal))
            blobs = {it.payload.blob: None for it in inbox if it.payload is not None and it.payload.blob}
            problems += await self._find_lost_blobs(reading, blobs)
        for number, outcomes in reading.outcomes.items():
            run_id = reading.fold.runs[number].id
            found, faults = await self._sum_items(run_id)
            problems += [Problem(run_id, what, None, Kind.ITEM, tree.journal) for what in faults]
            lost = Counter({outcome: count for outcome, count in outcomes.items() if outcome}) - found
            if lost and not faults:
                what = f"{lost.total()} outcomes of items are not what the journal tells"
                problems.append(Problem(run_id, what, None, Kind.ITEM, tree.journal))
        for stream in tree.streams:
            if stream.run in reading.fold.runs:
                problems += await self._find_damaged_lines(reading, reading.fold.runs[stream.run].id, stream.name)
        return problems

    async def _find_damaged_lines(self, reading: Reading, run_id: str, name: str) -> list[Problem]:
        """Items of a stream that are not what was written, or whose blobs are not. Not how many: that was counted when
        the tree was looked at, and a run that goes on may have emitted more."""
        problems: list[Problem] = []
        blobs: dict[str, int | None] = {}
        after = 0
        while page := await self._store.read_stream(run_id, name, after=after):
            for chunk in page:
                try:
                    lines = list(open_lines(chunk.body, f"stream {name!r} from position {chunk.first} on"))
                except UnreadableError as error:
                    problems.append(Problem(run_id, str(error), None, Kind.STREAM, reading.journal))
                    continue
                blobs |= {payload.blob: None for _, payload in lines if payload.blob}
            if page[-1].first + page[-1].count - 1 <= after:
                break
            after = page[-1].first + page[-1].count - 1
        return problems + await self._find_lost_blobs(reading, blobs)

    async def _sum_items(self, run_id: str) -> tuple[Counter[int], list[str]]:
        """The outcomes of the items of a run, as checksums, and the faults of items that cannot be read."""
        found: Counter[int] = Counter()
        faults: list[str] = []
        after = -1
        while page := await self._store.read_items(run_id, after=after):
            found.update(checksum_of(item.result or item.failure) for item in page if not item.fault)
            faults += [f"the outcome of item {item.index} cannot be read: {item.fault}" for item in page if item.fault]
            after = page[-1].index
        return found, faults

    async def _find_unheard_ends(self, tree: TreeRows, reading: Reading) -> list[Problem]:
        """Runs in other trees that have ended while this tree waits for that, and no message is on its way."""
        root = reading.fold.root
        names = [wait.name for wait in root.waits if wait.kind is WaitKind.CHILD]
        if root.status is not RunStatus.WAITING or not names or any(it.kind == "ended" for it in tree.inbox):
            return []
        found = await self._store.find_runs(names)
        return [
            Problem(
                root.id, f"waits for {name}, which has ended, and has not heard of it", None, Kind.WAKE, tree.journal
            )
            for name in names
            if name in found and found[name].status.is_terminal and found[name].status is not RunStatus.CONTINUED
        ]

    # -- Repair ----------------------------------------------------------------------------------------------

    async def _repair(self, tree: TreeRows, reading: Reading, problems: list[Problem]) -> list[Problem]:
        """Write what follows from the journal, if the journal is sound; then look again."""
        wanted = [problem for problem in problems if problem.kind in REPAIRABLE]
        root = root_row(tree)
        if not wanted or not reading.is_sound or root is None or not reading.root_id:
            return problems
        folded = reading.fold.runs
        keys = {row.number: row.key for row in tree.runs}
        wrong = {row.number for row in tree.runs if row.number in folded and differences(tree, row, folded[row.number])}
        repair = Repair(
            journal=tree.journal,
            after=tree.tail,
            runs=tuple((keys.get(number), folded[number]) for number in sorted(wrong | (folded.keys() - keys.keys()))),
            removed=tuple(row.key for row in tree.runs if row.number not in folded and _is_child(row)),
            wake=any(problem.kind is Kind.WAKE for problem in wanted),
        )
        try:
            if not await self._examiner.repair(repair):
                return problems
        except StoreUnavailableError:
            return problems
        (after,) = await self._examiner.examine([tree.journal])
        left = await self._judge(after, await self._read(after, None))
        is_left = {(problem.run_id, problem.kind) for problem in left if problem.kind is not Kind.WAKE}
        return [
            replace(problem, is_repaired=problem in wanted and (problem.run_id, problem.kind) not in is_left)
            for problem in problems
        ]


def _is_child(row: RunRow) -> bool:
    return row.number > 0


async def find_damaged_schedules(store: Store) -> AsyncIterator[Problem]:
    """Every schedule that is not what was written, or that this release cannot read, by its own checksum."""
    after = ""
    while page := await store.list_schedules(after=after, limit=TREES_MAX):
        for row in page:
            try:
                schedule_in(row.data)
            except ValueError as error:
                yield Problem("", f"schedule {row.name}: {error}", None, Kind.SCHEDULE)
        after = page[-1].name


async def find_damaged_checkpoints(store: Store) -> AsyncIterator[Problem]:
    """Every checkpoint that is not what was written, or that this release cannot read, by its own checksum.

    A row never changes, so one look is enough, also while others append and clear. A row that is missing cannot be
    known: numbers may have gaps.
    """
    after = b""
    while page := await store.examiner.list_checkpoints(after=after, limit=TREES_MAX):
        for raw in page:
            try:
                run_id = raw.decode()
            except UnicodeDecodeError:
                shown = raw.decode("utf-8", "replace")
                yield Problem(shown, "checkpoints of an id that is no longer text", None, Kind.CHECKPOINT)
                continue
            for row in await store.read_checkpoints(run_id):
                try:
                    open_checkpoint(run_id, row)
                except (CorruptCheckpointError, FormatTooNewError) as error:
                    yield Problem(run_id, f"checkpoint {row[0]}: {error.reason}", None, Kind.CHECKPOINT)
        after = page[-1]
