"""Which steps a value needs now: those of a branch only when its condition has chosen that branch.

`steps.a + steps.b` needs both at once. `input.fast ? steps.a : steps.b` needs one of the two, and which one is known as
soon as the condition can be evaluated, which may itself need steps. `coalesce` needs its second value when the first
one is null or missing. `&&` and `||` are not branches: their operands are equal, as in CEL, so all of them are needed
and run side by side. In a macro (`items.map(x, ...)`) all branches count, as each element may take another one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from outlive._cel.errors import ExpressionError
from outlive._cel.expression import Expression
from outlive._cel.syntax import Coalesce, Conditional, Macro, Node, children, path_of, references_of
from outlive._cel.values import MissingError

Scope = Mapping[str, Any]
Steps = AbstractSet[str]
Choice = Callable[[Scope, Steps], Steps]
Evaluate = Callable[[Scope], Any]

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Demand:
    """The steps of its flow that a value needs."""

    always: frozenset[str] = _NONE
    """Needed in any case."""
    choices: tuple[Choice, ...] = ()
    """Each says what it needs besides, given what is known."""

    def missing(self, scope: Scope, unfinished: Steps) -> Steps:
        """Which of the unfinished steps must end before more is known; none if the value can be rendered."""
        found = self.always & unfinished
        for choice in self.choices:
            found |= choice(scope, unfinished)
        return found


NOTHING = Demand()


def all_of(demands: Sequence[Demand]) -> Demand:
    """The steps that several values need together."""
    if len(demands) == 1:
        return demands[0]
    always = _NONE.union(*(each.always for each in demands))
    return Demand(always, tuple(choice for each in demands for choice in each.choices))


def one_of(condition: Demand, choose: Callable[[Scope], Demand], branches: Collection[Demand]) -> Demand:
    """The steps that a value with several branches needs; `choose` evaluates the condition."""
    common = frozenset.intersection(*(each.always for each in branches))
    always = condition.always | common
    if not any(each.choices or each.always - always for each in branches):
        return Demand(always, condition.choices)

    def choice(scope: Scope, unfinished: Steps) -> Steps:
        missing = condition.missing(scope, unfinished)
        if missing:
            return missing
        try:
            branch = choose(scope)
        except ExpressionError:
            return _NONE  # It is reported where the value is rendered.
        return branch.missing(scope, unfinished)

    return Demand(always, (choice,))


def first_of(values: Sequence[tuple[Demand, Evaluate]]) -> Demand:
    """The steps that the first value needs that is neither null nor missing."""
    always = values[0][0].always
    if not any(demand.choices or demand.always - always for demand, _ in values):
        return Demand(always)

    def choice(scope: Scope, unfinished: Steps) -> Steps:
        for demand, evaluate in values:
            missing = demand.missing(scope, unfinished)
            if missing:
                return missing
            try:
                if evaluate(scope) is not None:
                    return _NONE
            except MissingError:
                continue
            except ExpressionError:
                return _NONE
        return _NONE

    return Demand(always, (choice,))


def steps_in(references: Collection[tuple[str, ...]]) -> frozenset[str]:
    """The steps among what is referred to."""
    return frozenset([each[1] for each in references if len(each) > 1 and each[0] == "steps"])


def demand_of(expression: Expression) -> Demand:
    """The steps that an expression needs."""
    always = steps_in(expression.references)
    if not always:
        return NOTHING
    if path_of(expression.tree) is not None or not _has_branches(expression.tree):
        return Demand(always)
    return _demand(expression.tree)


def _has_branches(tree: Node) -> bool:
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, Conditional | Coalesce):
            return True
        left += children(node)
    return False


def _demand(node: Node) -> Demand:
    match node:
        case Conditional(condition=condition, yes=yes, no=no):
            holds, branches = _evaluate(condition), (_demand(yes), _demand(no))

            def choose(scope: Scope) -> Demand:
                found = holds(scope)
                return branches[0] if found is True else branches[1] if found is False else NOTHING

            return one_of(_demand(condition), choose, branches)
        case Coalesce(values=values):
            return first_of([(_demand(each), _evaluate(each)) for each in values])
        case Macro(target=target, bodies=bodies):
            inside = frozenset(each for body in bodies for each in references_of(body))
            return all_of([_demand(target), Demand(steps_in(inside))])
        case _:
            path = path_of(node)
            if path is None:
                return all_of([_demand(each) for each in children(node)] or [NOTHING])
            # The indexes inside a path may need steps too.
            return Demand(steps_in(references_of(node)))


def _evaluate(node: Node) -> Evaluate:
    return Expression("", node).run
