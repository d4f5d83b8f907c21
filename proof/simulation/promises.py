"""Those who settle promises, and what must have come of it.

A promise is settled once: of all who settle it, at most one is answered that it was first, that one's value is what the
run got, and the journal has one settlement. Who gets no answer asks again, and may then hear that it was too late: so
it may be that no settler knows that it was first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from outlive._kernel.journal.event import PromiseMade, SignalReceived
from outlive._kernel.model.promise import promise_signal
from outlive.errors import RunFinishedError
from outlive.errors.run import PromiseNotFoundError
from proof.simulation.book import Book
from proof.simulation.ledger import Ledger
from proof.simulation.process import SimulatedEngine
from proof.simulation.program import Case, Settling, each_order, generations
from proof.simulation.request import Ask, MayGoOn, NotYetError, UserRequest, Verb
from proof.simulation.world import World


class Settlers:
    """All programs outside that settle promises."""

    def __init__(self, world: World, ledger: Ledger, ask: Ask, *, may_go_on: MayGoOn) -> None:
        self._world = world
        self._ledger = ledger
        self._ask = ask
        self._may_go_on = may_go_on
        self._answers: dict[str, dict[int, bool]] = {}
        """By promise: what each settler was answered, by its value."""

    def open(self, case: Case) -> None:
        """Settle the promises of a run, when it has made them."""
        for it in case.settlings:
            self._ask(it.after_seconds, UserRequest(f"settle {it.name} with {it.value}", self._settle(case, it)))

    def _settle(self, case: Case, it: Settling) -> Verb:
        async def verb(engine: SimulatedEngine) -> None:
            promise = self._ledger.promises.get(it.name)
            try:
                if promise is None:
                    run = await engine.get(case.id).info()
                    if run.has_ended:
                        raise RunFinishedError(case.id, run.status)
                    raise NotYetError
                settling = (
                    engine.promises.fail(promise, _error(it))
                    if it.is_failure
                    else engine.promises.resolve(promise, it.value)
                )
                self._answers.setdefault(it.name, {})[it.value] = await settling
            except RunFinishedError:
                if self._may_go_on(case):
                    raise NotYetError from None  # A user will retry it.
            except PromiseNotFoundError as error:
                if self._is_of_last_generation(case, it.name):
                    self._world.complain(f"promise {it.name} was made, and a settler got {error!r}")

        return verb

    def _is_of_last_generation(self, case: Case, name: str) -> bool:
        return any(order[:2] == ["promise", name] for order in generations(case.program)[-1])

    # -- What came of it -------------------------------------------------------------------------------------

    def judge(self, case: Case, result: list[Any] | None, books: Sequence[Book]) -> None:
        """Compare the answers with the journals, and with the result if the run has one."""
        names = [order[1] for order in each_order(case.program) if order[0] == "promise"]
        for name in names:
            firsts = [value for value, is_first in self._answers.get(name, {}).items() if is_first]
            if len(firsts) > 1:
                self._world.complain(f"promise {name} was settled by {firsts}, and each was answered that it was first")
        for book in books:
            self._judge_journal(book)
        if result is None:
            return
        for order, value in zip(generations(case.program)[-1], result, strict=True):
            if order[0] == "promise":
                self._judge_value(case, order[1], value)

    def _judge_journal(self, book: Book) -> None:
        made = {promise_signal(book.generation, it.call) for it in book.events if isinstance(it, PromiseMade)}
        settled = Counter(it.name for it in book.standing(SignalReceived) if it.name in made)
        for name, count in settled.items():
            if count > 1:
                self._world.complain(f"promise {name} of {book.root_id} has {count} settlements in its journal")

    def _judge_value(self, case: Case, name: str, value: Any) -> None:
        settlers = [it for it in case.settlings if it.name == name]
        answers = self._answers.get(name, {})
        firsts = {settler for settler, is_first in answers.items() if is_first}
        if value == "timeout":
            self._world.sometimes["promise timed out"] += 1
            return
        got = [it for it in settlers if value == (f"failed {it.value}" if it.is_failure else it.value)]
        if not got:
            self._world.complain(f"promise {name} gave {value}, and no program settles it so")
        elif firsts - {got[0].value}:
            self._world.complain(f"promise {name} gave {value}, and settler {firsts} was answered that it was first")
        self._world.sometimes["promise settled"] += 1
        if len(answers) > 1:
            self._world.sometimes["promise settled by several"] += 1


def _error(it: Settling) -> ValueError:
    return ValueError(str(it.value))
