"""`make verbs`: kill the server in the middle of every operation that changes something, and send the request again.

A trial prepares a store, sends one request with an `Idempotency-Key` to a server that is killed with SIGKILL, and sends
it again, twice, to a server that lives. Both answers must be the same, and one of those that the operation has for a
request that succeeds; and the audit log has the deed once. The server dies just before its answer, when everything is
written, and at random instants of the request.
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import random
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

import msgspec

from outlive.engine import Engine
from outlive.http.operation import OPERATIONS, Operation
from proof.http.place import add_store, new_store
from proof.http.requests import NOT_REPEATED, WANTED, Wanted, unproved
from proof.http.victim import server_of

ANSWER_SECONDS = 60.0
MANY = {
    "bulk.cancel": 3,
    "bulk.pause": 3,
    "bulk.retry": 3,
    "bulk.resume": 3,
    "bulk.purge": 3,
    "runs.signal_many": 2,
    "runs.start_many": 2,
}
"""Rows of the audit log for one request, where it is for several runs."""
REPLACED = {"events.add_sink", "queues.set", "schedules.set", "tasks.heartbeat", "schedules.backfill"}
"""What is written again as it is there already: nothing happens twice, and the log may have more rows."""
READ = {"deploys.journals"}
"""What changes nothing and shows what is hidden elsewhere: the log has a row for each time that it was shown."""


Answer = tuple[int, Any]
"""The status, and the JSON of the body."""


class Verdict(msgspec.Struct):
    """What came of a trial."""

    operation: str
    died: str
    problem: str = ""
    """Empty if all is well."""
    answer: str = ""


def ask(port: int, operation: Operation, wanted: Wanted, key: str) -> Answer:
    """Send a request with its key; the status and the JSON of the answer.

    Raises:
        OSError, http.client.HTTPException: the server is gone.
    """
    path = operation.path
    for name, value in wanted.names.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    headers = {"idempotency-key": key} | ({} if wanted.body is None else {"content-type": "application/json"})
    body = None if wanted.body is None else json.dumps(wanted.body).encode()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=ANSWER_SECONDS)
    try:
        connection.request(operation.method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")
    finally:
        connection.close()


async def kill_in(name: str, url: str, engine: Engine, word: str, *, after: float | None = None) -> Verdict:
    """One trial: the server dies before its answer, or so many seconds after the request was sent.

    `word` names what the request is about, and is its key: a trial with the word of an earlier one would only find what
    that one has done.
    """
    operation = OPERATIONS[name]
    died = "before the answer" if after is None else f"after {after * 1000:.1f} ms"
    await engine.resume(all=True)  # What an earlier trial may have paused.
    wanted = await WANTED[name](engine, word)
    began = datetime.now(UTC)
    lost, first, again = await asyncio.to_thread(_killed_and_sent_again, url, operation, wanted, word, after)
    rows = [row for row in await engine.audit.list(since=began, limit=100) if row.via == "http"]
    deeds = [row for row in rows if not row.is_denied]
    shown = f"{first[0]} {json.dumps(first[1])[:300]}"
    if first[0] not in operation.answers:
        return Verdict(name, died, f"the retry is answered with {shown}")
    if _comparable(lost) != _comparable(first):
        return Verdict(name, died, f"the answer was {lost}, and the retry is answered with {shown}")
    if _comparable(first) != _comparable(again):
        return Verdict(name, died, f"the retry is answered with {shown}, and the next one with {again}")
    if name not in REPLACED | READ and len(deeds) > MANY.get(name, 1):
        return Verdict(name, died, f"it was done {len(deeds)} times: {[(row.verb, row.target) for row in deeds]}")
    return Verdict(name, died, answer=shown)


def _comparable(answer: Answer) -> str:
    """An answer without what tells the time, and how many ticks of a range have no run yet: a worker starts them."""
    status, body = answer
    if isinstance(body, dict):
        body = {name: value for name, value in body.items() if name not in ("next_fires", "last_used_at", "ticks")}
    return f"{status} {json.dumps(body, sort_keys=True)}"


def _killed_and_sent_again(
    url: str, operation: Operation, wanted: Wanted, key: str, after: float | None
) -> tuple[Answer, Answer, Answer]:
    """The answer that was lost with the server, if it came to one, and those to the second and the third try."""
    with server_of(url, dies="before the answer" if after is None else "never") as victim:
        asking = threading.Thread(target=_ask_quietly, args=(victim.port, operation, wanted, key))
        asking.start()
        if after is not None:
            time.sleep(after)
            victim.kill()
        victim.wait_for_death()
        asking.join()
        said = victim.last_words if after is None else None
    lost = None if said is None else (said[0], json.loads(said[1] or b"null"))
    with server_of(url) as second:
        first, again = (ask(second.port, operation, wanted, key) for _ in range(2))
    return lost or first, first, again


def _ask_quietly(port: int, operation: Operation, wanted: Wanted, key: str) -> None:
    with suppress(OSError, http.client.HTTPException):
        ask(port, operation, wanted, key)


async def prove(url: str, names: list[str], *, random_kills: int, seed: int) -> list[Verdict]:
    """Try operations: a death before the answer, and some at random instants."""
    rng = random.Random(seed)
    found: list[Verdict] = []
    async with Engine(url) as engine:
        for number, name in enumerate(names):
            instants = [None, *(rng.uniform(0, 0.03) for _ in range(random_kills))]
            for trial, after in enumerate(instants):
                verdict = await kill_in(name, url, engine, f"p{seed}-{number}-{trial}", after=after)
                found.append(verdict)
                if verdict.problem:
                    print(f"{verdict.operation}, killed {verdict.died}: {verdict.problem}")
    return found


def main() -> int:
    """Run the trials, and print what is found."""
    parser = argparse.ArgumentParser(prog="python -m proof.http.verbs", description=__doc__)
    parser.add_argument("--kills", type=int, default=10, help="kills at random instants for each operation")
    parser.add_argument("--seed", type=int, default=0)
    add_store(parser)
    parser.add_argument("operations", nargs="*", help="only these")
    given = parser.parse_args()
    if missing := unproved():
        print(f"operations that are in no table of proof/http/requests.py: {', '.join(missing)}")
        return 1
    with new_store(given.store) as url:
        names = given.operations or sorted(WANTED)
        found = asyncio.run(prove(url, names, random_kills=given.kills, seed=given.seed))
    bad = [verdict for verdict in found if verdict.problem]
    print(f"{len(found)} kills in {len(names)} operations on {given.store}: {len(bad)} findings")
    for name, reason in NOT_REPEATED.items():
        print(f"not tried: {name}: {reason}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
