"""Putting messages into the inbox, and answering messages that become no events."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from outlive._kernel.model import RunStatus
from outlive._kernel.store.change import Delivery, Message, MessageRefusal, judge
from outlive._kernel.store.contract import NO_LIMIT
from outlive._kernel.store.sqlite.audit import put_audit
from outlive._kernel.store.sqlite.connection import Session
from outlive._kernel.store.sqlite.deleting import put_blob
from outlive._kernel.store.sqlite.writer import each
from outlive._kernel.store.tables.rows import answer_to_json, message_columns, tags_in, to_json

Inboxes = dict[int, tuple[int, int]]
"""By journal how many messages wait, and how many were counted at most: counted once for all that come together."""
ENDED = {status.value for status in RunStatus if status.is_terminal}


def put_messages(
    session: Session, messages: Sequence[Message], *, inbox_messages_max: int, inboxes: Inboxes | None = None
) -> list[Delivery]:
    """Judge messages one by one, store the good ones, and wake the trees they are for. `inboxes` is for all that is put
    in one go."""
    journals: set[int] = set()
    counted = {} if inboxes is None else inboxes
    deliveries = [_put(session, message, inbox_messages_max, journals, counted) for message in messages]
    wake_for_inbox(session, journals)
    # Even if all of them were due before: the owner of one has to read the message.
    session.made_due |= bool(journals)
    return deliveries


def wake_for_inbox(session: Session, journals: Iterable[int]) -> None:
    """Make those of these trees due whose inbox has messages."""
    if journals:
        session.execute("wake_for_inbox", to_json(sorted(journals)), session.clock())
        session.made_due |= bool(session.connection.changes())


def inherit(session: Session, ancestor: int, successor: int, *, lives_on: bool) -> None:
    """Move what waits for the root of an ended tree, all keys, and the streams of the root, to another tree. One that
    `lives_on` gets only what `Change.lives_on` says."""
    if lives_on:
        session.execute("inherit_talk", ancestor, successor)
        session.execute("inherit_talk_keys", ancestor, successor)
        return
    session.execute("inherit_messages", ancestor, successor)
    session.execute("inherit_message_keys", ancestor, successor)
    session.execute("inherit_streams", ancestor, successor)


def _refuse(session: Session, call: tuple[str, Sequence[MessageRefusal]]) -> None:
    worker_id, refusals = call
    for refusal in refusals:
        session.execute("refuse_message", refusal.journal, refusal.message, worker_id)
        if session.connection.changes():
            answer = refusal.answer
            session.execute("put_answers", refusal.journal, answer.key, answer_to_json(answer))


REFUSE_MESSAGES = each(_refuse)


def _put(session: Session, message: Message, inbox_messages_max: int, journals: set[int], inboxes: Inboxes) -> Delivery:
    found = session.fetch("judge_message", message.run_id, message.key)
    if found is None:
        return Delivery.UNKNOWN_RUN
    journal, number, status, root_status, root_workflow, root_tags, is_key_seen = found
    if not message.bounds.fit(root_workflow, tags_in(root_tags)):
        return Delivery.UNKNOWN_RUN
    assert isinstance(journal, int)
    waiting = _waiting(session, journal, inbox_messages_max, inboxes)
    is_over = status in ENDED or root_status in ENDED
    delivery = judge(is_key_seen=bool(is_key_seen), is_over=is_over, waiting=waiting, messages_max=inbox_messages_max)
    if delivery is not Delivery.ACCEPTED:
        return delivery
    session.execute(
        "put_message",
        journal,
        number,
        message.kind.value,
        message.at,
        message.name,
        message.key,
        *message_columns(message),
    )
    for blob in message.blobs:
        put_blob(session, blob)
    if message.key:
        session.execute("put_message_key", journal, message.key)
    if message.audit is not None:
        put_audit(session, [message.audit])
    journals.add(journal)
    if journal in inboxes:
        waiting, counted = inboxes[journal]
        inboxes[journal] = waiting + 1, counted
    return delivery


def _waiting(session: Session, journal: int, most: int, inboxes: Inboxes) -> int:
    """How many messages wait for a tree, counted up to `most`; 0 if there is no limit."""
    if most >= NO_LIMIT:
        return 0
    waiting, counted = inboxes.get(journal, (0, 0))
    if not counted or counted <= waiting < most:
        (waiting,) = session.fetch("count_messages", journal, most) or (0,)
        assert isinstance(waiting, int)
        inboxes[journal] = waiting, most
    return waiting
