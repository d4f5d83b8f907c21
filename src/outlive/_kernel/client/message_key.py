"""Keys of messages: two messages to one tree with the same key are one message, so a key says what it is the key of.

What a user calls a key counts for one name of signal and one run. A tree has many runs, and a webhook may well send
two signals for one event: neither may swallow the other, and neither may pass for a cancel.
"""

from __future__ import annotations

from outlive._kernel.store.contract import MessageKind

_KINDS = {
    "@cancel": MessageKind.CANCEL,
    "@skip": MessageKind.SKIP,
    "@decision": MessageKind.DECISION,
    "@ended": MessageKind.ENDED,
    "@ask": MessageKind.ASK,
}


def key_of_signal(run_id: str, name: str, key: str | None) -> str:
    """The key of a signal; empty if its sender gave none. A run id has no '/'."""
    return f"{run_id}/{name}/{key}" if key else ""


def key_of_ask(run_id: str, name: str, key: str) -> str:
    """The key of an ask, by which its answer is found. Without the nonce of the tree: the next generation of a run
    has the keys and the answers of the one before."""
    return f"@ask/{run_id}/{name}/{key}"


def key_of_cancel(number: int, nonce: int, *, call: str = "") -> str:
    """One key for every cancel of a run: asking twice is asking once.

    With the nonce of its tree, as a run keeps its keys when it goes on as a new generation: that one may be cancelled
    although its ancestor has caught a cancel, and the same number is another child then. A run that cancels one which
    it has started does not know that nonce; it gives its own, and its call.
    """
    key = f"@cancel/{number}/{nonce:x}"
    return f"{key}/{call}" if call else key


def key_of_skip(number: int, *, nonce: int, epoch: int, call: str) -> str:
    """One key for all who want to skip a step of a run that is parked: asking twice skips one. The epoch tells one
    parking from the next."""
    return f"@skip/{number}/{nonce:x}/{epoch}/{call}"


def key_of_decision(nonce: int, number: int, call: str) -> str:
    """One key for all decisions on one request: the first is the only one. With the nonce, as a run that goes on as a
    new one keeps the keys of the old one and may ask the same again."""
    return f"@decision/{nonce:016x}/{number}/{call}"


def key_of_end(run_id: str, nonce: int, *, generation: int = 0, forgotten: int = 0, retried: int = 0) -> str:
    """One key for every message to a run about the end of one that it started detached: one of them counts.

    A generation of the starter that asks again must hear what an earlier one, whose keys it has, has heard; so must one
    that has put that many events into a snapshot, or was retried behind that many, the message among them. And another
    run under the same id has an end of its own, and so has one that was retried after its end, at that event of its
    journal.
    """
    key = f"@ended/{run_id}/{nonce:x}" + (f"/retried{retried}" if retried else "")
    if forgotten:
        return f"{key}/{generation}/{forgotten}"
    return f"{key}/{generation}" if generation else key


def key_of_watch(run_id: str, nonce: int, asked: int, *, retried: int = 0) -> str:
    """One key for every message about the end of another run that answers one wait: that of the tree with this nonce
    which began after event `asked`. A tree that was retried behind that many events may wait there once more."""
    return f"@ended/{run_id}/@{nonce:x}/{asked}" + (f"/{retried}" if retried else "")


def kind_in(message_key: str) -> MessageKind | None:
    """The kind of a message with this key; None if the key does not say. The key of a signal begins with a run id,
    which has no '@'."""
    return _KINDS.get(message_key.partition("/")[0])


def ended_in(message_key: str) -> str:
    """The run that a message with the key of an end is about. A run id has no '/'."""
    return message_key.removeprefix("@ended/").partition("/")[0]


def sender_key(message_key: str, name: str) -> str:
    """The key that the sender of a signal or of an ask gave it."""
    return message_key.removeprefix("@ask/").partition("/")[2].removeprefix(f"{name}/")
