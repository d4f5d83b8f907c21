"""Make a plan that finds a bug as small as it can be, so that a person can read what happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec.structs import replace

from proof.simulation.plan import Plan
from proof.simulation.program import Case

PLAYS_MAX = 400


def shrink(plan: Plan, finds: Callable[[Plan], bool]) -> Plan:
    """The smallest plan on the way that still finds it: something is left out for as long as that goes well."""
    plays = 0
    while plays < PLAYS_MAX:
        for smaller in _smaller(plan):
            plays += 1
            if finds(smaller):
                plan = smaller
                break
        else:
            break
    return plan


def _smaller(plan: Plan) -> Iterator[Plan]:
    """The plan with one thing less."""
    for place in range(len(plan.cases)):
        yield replace(plan, cases=plan.cases[:place] + plan.cases[place + 1 :])
    for place in range(len(plan.strikes)):
        yield replace(plan, strikes=plan.strikes[:place] + plan.strikes[place + 1 :])
    for name in ("refused", "unanswered", "lost", "late", "slow"):
        if getattr(plan.rates, name):
            yield replace(plan, rates=replace(plan.rates, **{name: 0.0}))
    for name in plan.limits:
        yield replace(plan, limits={key: value for key, value in plan.limits.items() if key != name})
    for place in range(len(plan.pauses)):
        yield replace(plan, pauses=plan.pauses[:place] + plan.pauses[place + 1 :])
    if plan.overlaps:
        yield replace(plan, overlaps=False)
    for place, case in enumerate(plan.cases):
        for simpler in _simpler(case):
            yield replace(plan, cases=[*plan.cases[:place], simpler, *plan.cases[place + 1 :]])


def _simpler(case: Case) -> Iterator[Case]:
    """The case with one thing less."""
    # The last leg of a machine is its exit.
    for place in range(len(case.program) - bool(case.machine)):
        yield replace(case, program=case.program[:place] + case.program[place + 1 :])
    for place in range(len(case.pauses)):
        yield replace(case, pauses=case.pauses[:place] + case.pauses[place + 1 :])
    for place in range(len(case.forks)):
        yield replace(case, forks=case.forks[:place] + case.forks[place + 1 :])
    if case.readers:
        yield replace(case, readers=case.readers - 1)
    if case.cancel_seconds is not None:
        yield replace(case, cancel_seconds=None)
    if case.timeout_seconds is not None:
        yield replace(case, timeout_seconds=None)
    if case.starters > 1:
        yield replace(case, starters=1)
    if case.is_rare:
        yield replace(case, is_rare=False)
