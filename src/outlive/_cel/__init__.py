"""Expressions in CEL's syntax between `${{` and `}}`: values that are computed of plain data.

A total language over plain data: fields, comparison, boolean, arithmetic, conditionals, macros over lists and a fixed
list of pure functions. Every expression ends, gives the same value for the same data on every machine, and takes at
most `FUEL` steps. There is no way from data to Python: no attribute is read, nothing becomes Python source, no pattern
is compiled (decision 0043).

`tokens` reads words, `parsing` makes a tree of `syntax`, `checking` finds its `types` before anything runs,
`evaluating` makes one function of it, `template` finds expressions in a value, `demand` says which steps it needs.
"""

from __future__ import annotations

from outlive._cel.demand import steps_in
from outlive._cel.errors import ExpressionError
from outlive._cel.expression import CheckedTypes, Expression, parse
from outlive._cel.template import (
    Template,
    case_of,
    compile_cases,
    compile_value,
    references_of_address,
)
from outlive._cel.types import (
    ANY,
    BOOL,
    LIST,
    MAP,
    NULL,
    NUMBER,
    STRING,
    Type,
    join,
    type_of_schema,
    type_of_value,
)

__all__ = [
    "ANY",
    "BOOL",
    "LIST",
    "MAP",
    "NULL",
    "NUMBER",
    "STRING",
    "CheckedTypes",
    "Expression",
    "ExpressionError",
    "Template",
    "Type",
    "case_of",
    "compile_cases",
    "compile_value",
    "join",
    "parse",
    "references_of_address",
    "steps_in",
    "type_of_schema",
    "type_of_value",
]
