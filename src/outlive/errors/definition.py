"""Workflows and steps that cannot be defined, or cannot be found."""

from __future__ import annotations

from outlive.errors.base import OutliveError


class DefinitionError(OutliveError):
    """A workflow or step cannot be defined like this."""


class DuplicateDefinitionError(DefinitionError):
    """Two functions claim one name."""

    def __init__(self, kind: str, name: str, first: str, second: str) -> None:
        self.kind, self.name, self.first, self.second = kind, name, first, second
        super().__init__(
            f"{kind} {name!r} is defined twice: at {first} and at {second}; give one of them another name: "
            f'@outlive.{kind}(name="...")'
        )


class LocalDefinitionError(DefinitionError):
    """A lambda or a nested function cannot be found again after a restart."""

    def __init__(self, kind: str, qualname: str, where: str) -> None:
        self.kind, self.qualname, self.where = kind, qualname, where
        super().__init__(
            f"{qualname} at {where} cannot be a {kind}: a restarted process finds a {kind} by its name, and a "
            f"lambda or a function inside a function has none; define it at the top level of a module. If a decorator "
            f"made it, let that decorator keep the name of the function with functools.wraps"
        )


class UnstorableTypeError(DefinitionError, TypeError):
    """An annotation whose values could not be told apart when they are read back."""

    def __init__(self, what: str, type_name: str, reason: str) -> None:
        self.what, self.type_name, self.reason = what, type_name, reason
        super().__init__(
            f"{what} cannot be stored as {type_name}: {reason.rstrip('.')}. If it is a union, make its classes msgspec "
            f"structs with a tag, `class Card(msgspec.Struct, tag=True)`, or put them into a dataclass that has an "
            f"optional field for each"
        )


class WrongArgumentsError(OutliveError, TypeError):
    """A workflow or a step does not take the arguments that it was given."""

    def __init__(self, name: str, signature: str, reason: str, advice: str = "") -> None:
        self.name, self.signature, self.reason = name, signature, reason
        super().__init__(f"{name}{signature} does not take these arguments: {reason}{advice and f'; {advice}'}")

    def at_start(self) -> WrongArgumentsError:
        """The same for who starts a run."""
        advice = (
            f"give them by position, engine.start({self.name}, ...), or by name, "
            f"engine.start({self.name}.bind(...), id=...)"
        )
        return WrongArgumentsError(self.name, self.signature, self.reason, advice)


class WorkflowNotFoundError(OutliveError):
    """No workflow of this name and version is defined in this process."""

    def __init__(self, name: str, version: int | None, known: list[str]) -> None:
        self.name, self.version, self.known = name, version, known
        wanted = name if version is None else f"{name}@{version}"
        super().__init__(
            f"no workflow {wanted} is defined here; import the module that defines it before the engine starts "
            f"(defined: {', '.join(sorted(known)) or 'none'})"
        )
