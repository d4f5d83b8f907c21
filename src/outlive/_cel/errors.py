"""The error of expressions."""

from __future__ import annotations


class ExpressionError(Exception):
    """An expression that cannot be read, or that has no value for the data it was given."""

    def __init__(self, message: str, offset: int | None = None, suggestion: str = "", expression: str = "") -> None:
        self.message, self.offset, self.suggestion, self.expression = message, offset, suggestion, expression
        super().__init__(message)

    def at(self, offset: int) -> ExpressionError:
        """This error, with the character at which it happened unless that is known."""
        if self.offset is None:
            self.offset = offset
        return self

    def within(self, expression: str) -> ExpressionError:
        """This error, with the source of the expression unless that is known."""
        self.expression = self.expression or expression
        return self

    def __str__(self) -> str:
        where = f", at character {self.offset + 1}" if self.offset is not None and self.expression else ""
        shown = self.expression if len(self.expression) <= 200 else f"{self.expression[:200]}..."
        source = f" (in `{shown}`{where})" if self.expression else ""
        return f"{self.message}{self.suggestion and f'; {self.suggestion}'}{source}"
