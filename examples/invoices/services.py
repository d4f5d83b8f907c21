"""The world outside: the bank and the mailer, over HTTP.

Steps may run again, so each call carries the idempotency key of its step: the service does it once. The functions are
sync: the engine runs them on threads.
"""

import json
import urllib.error
import urllib.request
from typing import Any

import outlive
from invoices import settings
from invoices.models import DeclinedError

AGAIN = outlive.Retry(attempts=None, first=0.2, cap=3, on=(OSError,))
"""A service that is away comes back: OSError is what urllib raises for that, and for an answer of 500."""
BANK = outlive.limits.Breaker("bank", failures=5, reset=2, on=(OSError,), shared=True)
MAILER = outlive.limits.RateLimit("mailer", outlive.limits.TokenBucket(rate=settings.MAILS_PER_SECOND), shared=True)


@outlive.step(retry=AGAIN, timeout=10, breaker=BANK, raises=(DeclinedError,))
def charge(number: str, customer: str, cents: int) -> str:
    """Take the money of a customer; the id of the charge."""
    asked = {"number": number, "customer": customer, "cents": cents}
    try:
        charged: str = ask(f"{settings.BANK}/charges", asked)["charge"]
    except urllib.error.HTTPError as error:
        if error.code == 402:
            raise DeclinedError(f"{customer} has no money") from None
        raise
    return charged


@outlive.step(retry=AGAIN, timeout=10)
def give_back(number: str) -> None:
    """Refund what was charged for an invoice, if anything was, and see that nothing will be."""
    ask(f"{settings.BANK}/cancellations", {"number": number})


@outlive.step(retry=AGAIN, timeout=10, limit=MAILER)
def mail(to: str, kind: str, number: str, text: str) -> None:
    """Write to a customer: at least once, and hardly ever twice."""
    ask(f"{settings.MAILER}/mails", {"to": to, "kind": kind, "number": number, "text": text})


def ask(url: str, body: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request that may be repeated."""
    headers = {"content-type": "application/json", "idempotency-key": outlive.current_step().idempotency_key}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=5) as answer:
        got: dict[str, Any] = json.load(answer)
    return got
