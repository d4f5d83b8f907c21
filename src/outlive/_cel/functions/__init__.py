"""The functions of the language: a fixed list, pure, each bounded by the steps that it uses up.

`x.f(y)` is `f(x, y)`. None of them knows the time, chance, a file or a network, and none takes a pattern: a regular
expression from data can take for ever.
"""

from __future__ import annotations

from collections.abc import Mapping

from outlive._cel.functions import conversions, lists, numbers, texts, times
from outlive._cel.functions.table import Function

FUNCTIONS: Mapping[str, Function] = {
    **conversions.FUNCTIONS,
    **texts.FUNCTIONS,
    **numbers.FUNCTIONS,
    **lists.FUNCTIONS,
    **times.FUNCTIONS,
}
