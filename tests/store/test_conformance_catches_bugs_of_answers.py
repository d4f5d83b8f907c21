"""Planted defects in answers: each is found by the test that is meant to find it."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

import pytest
from msgspec.structs import replace

from outlive._kernel.store.contract import Answer, MessageRefusal
from outlive._kernel.store.memory import MemoryStore
from outlive._kernel.store.memory.state import Tree
from outlive_conformance.suite import MemoryFactory, find_failures


class Defective(MemoryStore):
    """The oracle with one defect; says which test must find it."""

    found_by: ClassVar[str]


class AnswersAgain(Defective):
    """Lets a later answer take the place of the first."""

    found_by = "test_answer_is_written_once"

    def _answer(self, tree: Tree, answers: Sequence[Answer]) -> None:
        tree.answers.update({answer.key: answer for answer in answers if answer.key in tree.keys})


class AnswersStrangers(Defective):
    """Keeps an answer to a message that never came."""

    found_by = "test_answer_is_written_once"

    def _answer(self, tree: Tree, answers: Sequence[Answer]) -> None:
        tree.keys |= {answer.key for answer in answers}
        super()._answer(tree, answers)


class LeavesAnswersBehind(Defective):
    """The successor of a tree has its keys, and not their answers."""

    found_by = "test_answer_goes_to_the_successor"

    def _inherit(self, successor: Tree, ancestor: int) -> None:
        super()._inherit(successor, ancestor)
        successor.answers = {}


class KnowsNothingOfOpenAsks(Defective):
    """Leaves out what has no answer."""

    found_by = "test_message_without_an_answer_is_known"

    async def find_answers(self, asks: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Answer | None]:
        found = await super().find_answers(asks)
        return {ask: answer for ask, answer in found.items() if answer is not None}


class LetsStrangersRefuse(Defective):
    """Does not look who owns the tree."""

    found_by = "test_only_the_owner_refuses"

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        for refusal in refusals:
            owner = self._state.trees[refusal.journal].root.owner
            await super().refuse_messages(owner, [refusal])


class RefusesWhatIsConsumed(Defective):
    """Answers without looking whether the message still waits."""

    found_by = "test_message_is_refused_or_consumed"

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        await super().refuse_messages(worker_id, refusals)
        for refusal in refusals:
            self._answer(self._state.trees[refusal.journal], [refusal.answer])


class RefusesInSilence(Defective):
    """Deletes the message, and forgets the answer."""

    found_by = "test_refused_message_is_gone_and_answered"

    async def refuse_messages(self, worker_id: str, refusals: Sequence[MessageRefusal]) -> None:
        silent = [replace(refusal, answer=Answer(key="")) for refusal in refusals]
        await super().refuse_messages(worker_id, silent)


@pytest.mark.parametrize("defect", Defective.__subclasses__(), ids=lambda defect: defect.__name__)
def test_defect_is_found(defect: type[Defective]) -> None:
    """By the test that is meant to."""
    assert find_failures(partial(MemoryFactory, defect), only=defect.found_by)
