"""Gives batches to a store until every change has an outcome, however long that takes.

A store that is down is not a failure of any run: the batch is kept and tried again with back-off. A commit whose
outcome is unknown is read back and compared, row by row, before it is answered. A batch that the store refuses for
another reason is tried change by change, so that one bad change does not affect the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from outlive._kernel.model import generation_id
from outlive._kernel.runtime.wakeup import Wakeup
from outlive._kernel.store.contract import Change, Outcome, Store
from outlive.errors import CommitUnknownError, StoreUnavailableError
from outlive.errors.store import StoreMovedError
from outlive.telemetry import Counters, log

BACKOFF_FIRST_SECONDS = 0.05
BACKOFF_MAX_SECONDS = 5.0
REFUSALS_MAX = 5
"""How often a change that the store refuses, though it is up, is tried before its tree is discarded."""


class CommitRetry:
    """Commits to one store."""

    def __init__(self, store: Store, *, counters: Counters, waiting: Callable[[], int]) -> None:
        self._store = store
        self._counters = counters
        self._waiting = waiting
        """How many changes wait, for the log."""
        self.trouble = ""
        """Why the store refuses at the moment, or empty."""
        self.withdrawn: set[int] = set()
        """Nonces of trees that are not to be created any more: their callers have gone."""
        self.is_answered = False
        """Whether the store has answered the changes that it was given last: not if all of them were withdrawn."""
        self.may_be_written = False
        """Whether the store has the changes that it was given last, or may have them: not after it has refused them."""

    async def commit(self, changes: list[Change], *, is_doubtful: bool = False) -> list[tuple[Outcome, int]]:
        """The outcomes of changes; `is_doubtful` if an earlier try may have been written without an answer."""
        pause, refusals = BACKOFF_FIRST_SECONDS, 0
        known: dict[int, tuple[Outcome, int]] = {}
        gone: set[int] = set()
        self.is_answered = True
        while True:
            if self.withdrawn and not is_doubtful:
                gone.update(self._take_withdrawn(changes))
                known |= dict.fromkeys(gone, (Outcome.CONFLICT, 0))
                if len(known) == len(changes):
                    self._stop_trying()
                    break
            open_ = [index for index in range(len(changes)) if index not in known]
            self.may_be_written = True
            try:
                outcomes = await self._store.commit([changes[index] for index in open_])
            except CommitUnknownError as error:
                self._counters.unknowns += 1
                is_doubtful = True
                await self._log_and_wait(error, pause)
                known |= await self.read_back(changes, open_)
                if len(known) == len(changes):
                    break
            except StoreMovedError:
                # Waiting does not help. The runs are discarded, and a start asks the store why it was refused.
                known |= {index: (Outcome.CONFLICT, changes[index].journal) for index in open_}
                self.trouble = ""
                break
            except StoreUnavailableError as error:
                self.may_be_written = is_doubtful
                await self._log_and_wait(error, pause)
            except Exception as error:
                # Not the store's state but something in the batch: commit each change alone, so that only one fails.
                await self._log_and_wait(error, pause)
                if len(open_) > 1:
                    known |= {
                        index: (await self.commit([changes[index]], is_doubtful=is_doubtful))[0] for index in open_
                    }
                    break
                refusals += 1
                if refusals == REFUSALS_MAX:
                    log.error("a change of journal %d is discarded: %s", changes[0].journal, error)
                    known[0] = Outcome.CONFLICT, changes[0].journal
                    break
            else:
                known |= dict(zip(open_, outcomes, strict=True))
                if is_doubtful:
                    # A change that was not found may have been written since, and conflicts with itself now.
                    lost = [index for index in open_ if known[index][0] is Outcome.CONFLICT]
                    known |= await self.read_back(changes, lost)
                break
            pause = min(BACKOFF_MAX_SECONDS, pause * 2)
        if self.trouble:
            self.log_recovery([known[index][0] for index in range(len(changes)) if index not in gone])
        return [known[index] for index in range(len(changes))]

    def _take_withdrawn(self, changes: Sequence[Change]) -> list[int]:
        """Which of these changes create trees that were withdrawn; from now on they are forgotten."""
        found = []
        for index, change in enumerate(changes):
            if not change.journal and (nonce := change.runs[0].nonce) in self.withdrawn:
                self.withdrawn.discard(nonce)
                found.append(index)
        return found

    async def read_back(self, changes: Sequence[Change], open_: list[int]) -> dict[int, tuple[Outcome, int]]:
        """Find out what became of a commit that failed around its end; what was not written is left out."""
        found = {index: await self._find_outcome(changes[index]) for index in open_}
        return {index: outcome for index, outcome in found.items() if outcome is not None}

    async def _find_outcome(self, change: Change) -> tuple[Outcome, int] | None:
        refusals = 0
        while True:
            try:
                return await find_outcome(self._store, change)
            except StoreMovedError:
                return Outcome.CONFLICT, change.journal
            except StoreUnavailableError as error:
                await self._log_and_wait(error, BACKOFF_MAX_SECONDS / 5)
            except Exception as error:
                # The rows cannot be read. The change is refused, so that its tree alone is rebuilt from its journal.
                await self._log_and_wait(error, BACKOFF_FIRST_SECONDS * 2**refusals)
                refusals += 1
                if refusals == REFUSALS_MAX:
                    log.error("what became of a change of journal %d cannot be read: %s", change.journal, error)
                    return Outcome.CONFLICT, change.journal

    async def _log_and_wait(self, error: Exception, pause: float) -> None:
        if not self.trouble:
            is_bug = not isinstance(error, StoreUnavailableError)
            text = "%s; %d changes wait and will be tried again"
            log.error(text, error, self._waiting(), exc_info=error if is_bug else None)
        self.trouble = str(error) or repr(error)
        await Wakeup().sleep(pause)  # One for each call: several may wait for the store at once.

    def log_recovery(self, outcomes: Sequence[Outcome] = ()) -> None:
        """The store has answered: log it, if it was away before. Not all is written that waited: meanwhile another
        worker may have gone on with a run, or the store has gone back."""
        if not self.trouble:
            return
        refused = outcomes.count(Outcome.CONFLICT)
        also = f"; it refuses {refused} of the {len(outcomes)} changes that it was given" if refused else ""
        log.warning("the store is back%s", also)
        self.trouble = ""

    def _stop_trying(self) -> None:
        """All changes were withdrawn, so whether the store is back is not known."""
        self.is_answered = False
        if self.trouble:
            log.warning("nothing waits for the store any more: the callers that started these runs have gone")
            self.trouble = ""


async def find_outcome(store: Store, change: Change) -> tuple[Outcome, int] | None:
    """The outcome of a change whose commit was never answered; None if it was not written.

    The rows of the change are compared with the rows of these seqs in the journal: no other writer has equal ones,
    because a row is sealed with the nonce of its tree, and says who made it and when. A change that forgets leaves only
    its rows from the snapshot on.
    """
    journal = change.journal
    if journal == 0:
        root = change.runs[0]
        run = await store.find_run(root.id)
        if run is None:
            return None
        if run.nonce != root.nonce:
            # Another tree has the id, or this tree had it and has continued as the next generation.
            run = await store.find_run(generation_id(root.id, 1))
            if run is None or run.nonce != root.nonce:
                return Outcome.CONFLICT, 0
        journal = run.journal
    kept = [row for row in change.rows if change.forgets is None or row[0] >= change.forgets.before]
    rows = await store.read_journal(journal, after=change.after, limit=len(kept))
    if not rows:
        return None
    if change.journal == 0 and rows[0][0] > kept[0][0]:
        # It has gone on since and has forgotten its first rows; that it exists is enough.
        return Outcome.COMMITTED, journal
    return (Outcome.COMMITTED if rows == kept else Outcome.CONFLICT), journal
