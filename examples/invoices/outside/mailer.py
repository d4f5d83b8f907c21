"""A mailer: it sends a mail once for each idempotency key.

python -m invoices.outside.mailer 8102 mailer.jsonl
"""

import sys
import time
from pathlib import Path
from typing import Any

from invoices.outside.ledger import Answer, Ledger, Server


class Mailer:
    """What it does with a request."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._sent = {entry["key"] for entry in ledger.entries}

    def answer(self, path: str, key: str, body: dict[str, Any]) -> Answer:
        with self._ledger.lock:
            if key not in self._sent:
                self._ledger.write(key=key, at=time.time(), **body)
                self._sent.add(key)
        return 202, {}


if __name__ == "__main__":
    Server(int(sys.argv[1]), Mailer(Ledger(Path(sys.argv[2]))).answer).serve_forever()
