"""A customer who orders a lamp, and reads how it goes.

python -m invoices.customer [number] [cents]
"""

import json
import sys
import time
import urllib.request

from invoices.settings import WEB


def main(number: str, cents: int) -> None:
    """Place an order, and follow it to its end."""
    order = json.dumps({"customer": "ann", "item": "lamp", "cents": cents}).encode()
    headers = {"content-type": "application/json"}
    request = urllib.request.Request(f"{WEB}/invoices/{number}", order, headers, method="PUT")
    urllib.request.urlopen(request).close()
    with urllib.request.urlopen(f"{WEB}/invoices/{number}/progress") as progress:
        for line in progress:
            if line.startswith(b"data: {") and (shown := json.loads(line[6:])):
                print(shown.get("stage", ""))
    with urllib.request.urlopen(f"{WEB}/invoices/{number}") as answer:
        print(json.load(answer))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else f"{time.time():.0f}", int(sys.argv[2]) if len(sys.argv) > 2 else 4200)
