"""Answers: a message that wants one gets one, which is found by its key."""

from __future__ import annotations

from outlive._kernel.model import Failure
from outlive._kernel.store.contract import Answer, MessageKind, MessageRefusal, Outcome, Store
from outlive_conformance.suite.builders import (
    LARGE_BYTES,
    Writer,
    begin,
    follow,
    hire,
    message,
    read_message_ids,
    read_names,
    send,
    stepped,
    value,
)
from outlive_conformance.suite.facet import Facet
from outlive_conformance.suite.successors import go_on

ASK = ("run-1", "k")
REFUSED = Answer(key="k", failure=Failure("builtins.ValueError", "too many", ["too many"]))


class AnswersConformance(Facet):
    """The `answers` of a change, `refuse_messages` and `find_answers`."""

    async def test_answer_is_found_by_the_run_and_the_key(self, store: Store, other: Store) -> None:
        """A result or a failure comes back whole, from whichever process it is asked for."""
        tree = await ask(store)
        await send(store, message(store, "run-1", kind=MessageKind.ASK, key="k2"))
        failed = Answer(key="k2", failure=Failure("app.Broken", "no", ["no"], {"code": 7}))

        await tree.step(answers=[answer("k", {"total": 3}), failed])

        assert await other.find_answers([("run-1", "k2"), ASK]) == {
            ASK: answer("k", {"total": 3}),
            ("run-1", "k2"): failed,
        }

    async def test_message_without_an_answer_is_known(self, store: Store) -> None:
        """One that was never sent is not, and neither is one to a run that is not there."""
        await ask(store)

        assert await store.find_answers([ASK, ("run-1", "unheard-of"), ("unknown", "k")]) == {ASK: None}
        assert await store.find_answers([]) == {}

    async def test_answer_is_written_once(self, store: Store) -> None:
        """A second answer changes nothing, and the change around it commits; so does one to an unknown key."""
        tree = await ask(store)
        await tree.step(answers=[answer("k", "first")])

        outcome = await tree.try_write(stepped(store), answers=[answer("k", "second"), answer("unheard-of", "x")])

        assert outcome is Outcome.COMMITTED
        assert await store.find_answers([ASK, ("run-1", "unheard-of")]) == {ASK: answer("k", "first")}

    async def test_answer_of_a_refused_change_is_not_kept(self, store: Store) -> None:
        """A conflict leaves no answer behind."""
        tree = await ask(store)
        late = tree.twin()
        await tree.step()

        await late.try_write(stepped(store), answers=[answer("k", "late")])

        assert await store.find_answers([ASK]) == {ASK: None}

    async def test_answer_belongs_to_its_tree(self, store: Store) -> None:
        """Two trees that were sent the same key answer it independently; a child is asked by its own id."""
        tree, second = await ask(store), await begin(store, "run-2")
        child_id = await tree.spawn(1)
        await send(store, message(store, "run-2", key="k"), message(store, child_id, key="of-child"))

        await second.step(answers=[answer("k", 2)])
        await tree.step(answers=[answer("of-child", 1)])

        found = await store.find_answers([ASK, ("run-2", "k"), (child_id, "of-child")])
        assert found == {ASK: None, ("run-2", "k"): answer("k", 2), (child_id, "of-child"): answer("of-child", 1)}

    async def test_large_answer_is_not_truncated(self, store: Store) -> None:
        """More than 2 MB come back whole."""
        tree = await ask(store)
        large = answer("k", "x" * LARGE_BYTES)
        await tree.step(answers=[large])

        assert await store.find_answers([ASK]) == {ASK: large}

    async def test_key_may_be_any_text(self, store: Store) -> None:
        """A key works also if some databases cannot hold it as it is."""
        tree = await begin(store)
        keys = ["\0\1", "long" * 1_000, "日本"]
        await send(store, *(message(store, "run-1", key=key) for key in keys))

        await tree.step(answers=[answer(key, key) for key in keys])

        asks = [("run-1", key) for key in keys]
        assert await store.find_answers(asks) == {ask: answer(ask[1], ask[1]) for ask in asks}

    async def test_checker_sees_what_is_answered(self, store: Store) -> None:
        """A checker sees which keys of a tree have an answer."""
        tree = await ask(store)
        await send(store, message(store, "run-1", key="open"))
        await tree.step(answers=[answer("k", 1)])

        (rows,) = await store.examiner.examine([tree.journal])

        assert rows.keys == ("k", "open")
        assert rows.answered == ("k",)

    async def test_answer_goes_to_the_successor(self, store: Store) -> None:
        """An answer of the change that ends a tree too: the sender asks again by the same id and finds it."""
        tree = await ask(store)
        await send(store, message(store, "run-1", key="last"), message(store, "run-1", key="open"))
        await tree.step(answers=[answer("k", 1)])

        await go_on(tree, answers=[answer("last", 2)])

        asks = [ASK, ("run-1", "last"), ("run-1", "open")]
        assert await store.find_answers(asks) == dict(zip(asks, (answer("k", 1), answer("last", 2), None), strict=True))
        successor = await follow(store, "run-1")
        await successor.step(answers=[answer("open", 3)])
        assert await store.find_answers(asks[2:]) == {asks[2]: answer("open", 3)}

    # -- Refused -------------------------------------------------------------------------------------------

    async def test_refused_message_is_gone_and_answered(self, store: Store) -> None:
        """Its journal has not one row more, and the others wait in their order."""
        tree = await ask(store, worker="anvil")
        await send(store, message(store, "run-1", "next"))
        before = await store.read_journal(tree.journal)

        await refuse(store, tree)

        assert await read_names(store, tree) == ["next"]
        assert await store.find_answers([ASK]) == {ASK: REFUSED}
        assert await store.read_journal(tree.journal) == before
        assert await tree.try_write(stepped(store)) is Outcome.COMMITTED

    async def test_refusing_twice_is_refusing_once(self, store: Store) -> None:
        """The first refusal counts."""
        tree = await ask(store, worker="anvil")
        ids = await read_message_ids(store, tree)
        await refuse(store, tree)

        other = MessageRefusal(journal=tree.journal, message=ids[0], answer=answer("k", "another"))
        await store.refuse_messages("anvil", [other])

        assert await store.find_answers([ASK]) == {ASK: REFUSED}

    async def test_message_is_refused_or_consumed(self, store: Store) -> None:
        """One that has become an event is not refused any more."""
        tree = await ask(store, worker="anvil")
        ids = await read_message_ids(store, tree)
        await tree.step(consumed=ids)

        await store.refuse_messages("anvil", [MessageRefusal(journal=tree.journal, message=ids[0], answer=REFUSED)])

        assert await store.find_answers([ASK]) == {ASK: None}

    async def test_only_the_owner_refuses(self, store: Store, other: Store) -> None:
        """A worker that has lost the tree leaves the message to its owner."""
        tree = await ask(store, worker="anvil")
        await hire(store, "bellows")

        await refuse(other, tree, worker="bellows")

        assert await store.find_answers([ASK]) == {ASK: None}
        assert len(await read_message_ids(store, tree)) == 1

    async def test_message_of_another_tree_is_not_refused(self, store: Store) -> None:
        """A worker that owns two trees names the tree that the message waits for."""
        tree = await ask(store, worker="anvil")
        second = await begin(store, "run-2", worker="anvil")
        ids = await read_message_ids(store, tree)

        await store.refuse_messages("anvil", [MessageRefusal(journal=second.journal, message=ids[0], answer=REFUSED)])

        assert await store.find_answers([ASK]) == {ASK: None}
        assert await read_message_ids(store, tree) == ids


async def ask(store: Store, *, worker: str = "") -> Writer:
    """A tree that was asked something, with the key `k`."""
    if worker:
        await hire(store, worker)
    tree = await begin(store, worker=worker)
    await send(store, message(store, "run-1", "add", kind=MessageKind.ASK, key="k"))
    return tree


async def refuse(store: Store, tree: Writer, *, worker: str = "anvil") -> None:
    """Refuse the oldest message of a tree."""
    ids = await read_message_ids(store, tree)
    await store.refuse_messages(worker, [MessageRefusal(journal=tree.journal, message=ids[0], answer=REFUSED)])


def answer(key: str, result: object) -> Answer:
    """An answer that is a result."""
    return Answer(key=key, result=value(result))
