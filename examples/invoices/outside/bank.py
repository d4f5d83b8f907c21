"""A bank as banks are: it charges once for each idempotency key, and is otherwise no help.

    python -m invoices.outside.bank 8101 bank.jsonl http://127.0.0.1:8000/hooks/bank

By a hash of the number of an invoice it declines some charges, answers 500 after it has taken the money, and sends its
word that a payment is settled before it answers, late, twice, or never. It sends until it is answered with 2xx.
"""

import json
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any
from zlib import crc32

from invoices import settings
from invoices.outside.ledger import Answer, Ledger, Server
from outlive.http.signature import signed_headers

LATE_SECONDS = 3.0
TWICE_SECONDS = 1.0
AGAIN_SECONDS = 0.5


def habit(number: str) -> str:
    """How the bank treats an invoice: known to those who know it."""
    share = crc32(number.encode()) % 100
    for habit, until in HABITS:
        if share < until:
            return habit
    return "plain"


HABITS = (("declines", 8), ("answers 500", 20), ("early", 35), ("late", 50), ("twice", 65), ("never", 68))


class Bank:
    """What it does with a request, and the word that it sends afterwards."""

    def __init__(self, ledger: Ledger, hook: str) -> None:
        self._ledger, self._hook = ledger, hook
        self._charges: dict[str, str] = {}
        """By idempotency key."""
        self._cancelled: set[str] = set()
        self._troubled: set[str] = set()
        """Numbers that were answered with 500 once."""
        heard = {entry["event"] for entry in ledger.entries if entry["kind"] == "heard"}
        for entry in ledger.entries:
            if entry["kind"] == "charge":
                self._charges[entry["key"]] = entry["charge"]
                self._troubled.add(entry["number"])
                if f"evt-{entry['charge']}" not in heard:
                    self._announce(entry)
            elif entry["kind"] == "cancellation":
                self._cancelled.add(entry["number"])

    def answer(self, path: str, key: str, body: dict[str, Any]) -> Answer:
        number = body["number"]
        if path == "/look":
            return 200, {"state": "cancelled" if number in self._cancelled else "in order"}
        if path == "/cancellations":
            return self._cancel(number)
        return self._charge(key, number, body)

    def _charge(self, key: str, number: str, body: dict[str, Any]) -> Answer:
        with self._ledger.lock:
            if key in self._charges:
                return 200, {"charge": self._charges[key]}
            if number in self._cancelled or habit(number) == "declines":
                return 402, {"error": "declined"}
            entry = {"kind": "charge", "key": key, "charge": f"ch-{len(self._charges) + 1}", **body}
            self._charges[key] = entry["charge"]
            self._ledger.write(**entry)
        said = self._announce(entry)
        if habit(number) == "early":
            said.join(timeout=2)
        if habit(number) == "answers 500" and number not in self._troubled:
            self._troubled.add(number)
            return 500, {"error": "our computer is tired"}
        return 200, {"charge": entry["charge"]}

    def _cancel(self, number: str) -> Answer:
        with self._ledger.lock:
            if number not in self._cancelled:
                self._cancelled.add(number)
                charged = [it["cents"] for it in self._ledger.entries if _is_charge(it, number)]
                self._ledger.write(kind="cancellation", number=number, cents=sum(charged))
        return 200, {}

    def _announce(self, entry: dict[str, Any]) -> threading.Thread:
        """Send the word that a payment is settled, in its own time."""
        thread = threading.Thread(target=self._send, args=(entry,), daemon=True)
        thread.start()
        return thread

    def _send(self, entry: dict[str, Any]) -> None:
        how = habit(entry["number"])
        if how == "never":
            return
        time.sleep(LATE_SECONDS if how == "late" else 0)
        self._deliver(entry)
        self._ledger.write(kind="heard", event=f"evt-{entry['charge']}", number=entry["number"])
        if how == "twice":
            time.sleep(TWICE_SECONDS)
            self._deliver(entry)

    def _deliver(self, entry: dict[str, Any]) -> None:
        """Until it is taken; the id is that of the event, each time."""
        body = json.dumps({name: entry[name] for name in ("number", "charge", "cents")}).encode()
        while True:
            signed = signed_headers(settings.HOOK_KEY, f"evt-{entry['charge']}", body, now_seconds=time.time())
            headers = {"content-type": "application/json", **signed}
            try:
                urllib.request.urlopen(urllib.request.Request(self._hook, body, headers), timeout=5).close()
            except OSError:
                time.sleep(AGAIN_SECONDS)
            else:
                return


def _is_charge(entry: dict[str, Any], number: str) -> bool:
    return entry["kind"] == "charge" and entry["number"] == number


if __name__ == "__main__":
    Server(int(sys.argv[1]), Bank(Ledger(Path(sys.argv[2])), sys.argv[3]).answer).serve_forever()
