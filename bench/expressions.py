"""`python -m bench.expressions`: what reading and evaluating an expression of a flow takes, in CPU time.

One expression of each kind: a field, arithmetic and comparison, a condition, a list, a text. Reading is measured
without its cache. The goal is 20 us for evaluating, whatever the kind.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

from outlive._cel import compile_value
from outlive._cel.expression import remembered

GOAL_US = 20
SCOPE = {
    "input": {
        "order": {"id": 7, "cents": 1050, "country": "SE", "lines": [{"sku": "a", "n": 2}, {"sku": "b", "n": 3}]}
    },
    "steps": {"reserve": {"id": "h-1"}, "charge": None},
}
KINDS = {
    "field": "${{ input.order.id }}",
    "arithmetic": "${{ input.order.cents / 7 * 2.0 > 3.0 && input.order.country in ['SE', 'NO'] }}",
    "condition": "${{ steps.charge != null ? steps.charge : coalesce(input.order.coupon, steps.reserve.id) }}",
    "list": "${{ input.order.lines.filter(line, line.n > 2).map(line, line.sku).join(', ') }}",
    "text": "Order ${{ input.order.id }} of ${{ input.order.country }}: ${{ input.order.cents / 100 }} EUR",
}


def microseconds(work: Callable[[], object], times: int) -> float:
    """The best of five turns."""
    best = float("inf")
    for _ in range(5):
        began = time.process_time()
        for _ in range(times):
            work()
        best = min(best, time.process_time() - began)
    return best / times * 1e6


def main() -> int:
    """Print a line for each kind; 1 if one takes longer than its goal."""
    slow = 0
    for name, text in KINDS.items():

        def read(text: str = text) -> object:
            remembered.cache_clear()
            return compile_value(text)

        template = compile_value(text)
        evaluated = microseconds(lambda template=template: template.render(SCOPE), 5000)  # type: ignore[misc]
        print(f"{name:12} {evaluated:6.1f} us to evaluate {microseconds(read, 300):7.0f} us to read")
        slow += evaluated > GOAL_US
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
