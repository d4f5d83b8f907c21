"""Arguments and options that cannot work, refused where they are given."""

from __future__ import annotations

from outlive.errors.base import ConfigurationError
from outlive.errors.definition import DefinitionError

SHOWN_CHARACTERS_MAX = 80


class InvalidArgumentError(ConfigurationError, DefinitionError):
    """A verb, a decorator or an option was given something that cannot work; nothing was done.

    Carries `where` it was given, the `name` of the argument, the value that was `given` and what is `wanted`. It is a
    `ValueError`; one of the wrong type is `ArgumentTypeError`.
    """

    def __init__(self, where: str, name: str, given: object, wanted: str) -> None:
        self.where, self.name, self.given, self.wanted = where, name, given, wanted
        super().__init__(f"{where}: {name}={shown(given)} cannot work: {wanted}")


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """A verb, a decorator or an option was given something of the wrong type; nothing was done."""


def shown(given: object) -> str:
    """A value as its user wrote it, but not pages of it."""
    try:
        text = repr(given)
    except Exception:  # It is the user's code.
        text = f"<{type(given).__qualname__}>"
    return text if len(text) <= SHOWN_CHARACTERS_MAX else f"{text[: SHOWN_CHARACTERS_MAX - 3]}..."
