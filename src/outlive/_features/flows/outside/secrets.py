"""Secrets of flows: a reference in the journal, the value in the step that uses it, and neither in what comes out.

`vars.<name>` of a secret variable is a *reference*: text that names the secret between two characters that no text has
(Unicode calls them noncharacters). An expression may put it into a header as a whole or as a part, and it goes through
rendering, arguments and journal as what it is. The step that needs the value resolves it where it runs, and blots it
out of its result and of its errors.

Two things keep data from becoming a reference. A step resolves only secrets that its own `with` names in the document.
And a step that has such a secret refuses data with one of the two characters: otherwise an input could let the value
appear in another place of the same request, where other people read it.
"""

from __future__ import annotations

import base64
import contextvars
import functools
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, quote_plus

import msgspec

from outlive._kernel.define.in_step import REDACT, current_step
from outlive.errors import StepFailedError
from outlive.errors.outside import SecretError
from outlive.errors.program import NotInRunError

if TYPE_CHECKING:
    from outlive._features.flows.document.model import Document
    from outlive._features.flows.outside.grants import Bounds

OPEN, CLOSE = "\ufdd0", "\ufdd1"
BLOTTED = "[REDACTED]"
CHARACTERS_MIN = 4
"""Shorter ones cannot be blotted out: they would be found everywhere."""
PACKED_CHARACTERS_MIN = 6
"""The shortest secret that is looked for as Base64."""

_BY_START = "by start:"
_REFERENCE = re.compile(f"{OPEN}({_BY_START})?secret:([A-Za-z_][A-Za-z0-9_]*):([^{OPEN}{CLOSE}]*){CLOSE}")


SECRETS = f"{OPEN}secrets"
"""Where the scope of a run has the references of its flow, by variable; no expression can name it."""


def reference_to(name: str, env: str | None = None, *, by_start: bool = False) -> str:
    """The value of `vars.<name>` of a secret variable.

    Args:
        env: the environment variable that its document names.
        by_start: whether the start of a run says to which server a request takes it.
    """
    return f"{OPEN}{_BY_START if by_start else ''}secret:{name}:{env or ''}{CLOSE}"


def references_of(document: Document) -> dict[str, str]:
    """The references of a flow, by variable."""
    from outlive._features.flows.outside.addresses import secrets_by_start

    by_start = secrets_by_start(document)
    secrets = {name: each for name, each in document.vars.items() if each.secret}
    return {name: reference_to(name, each.env, by_start=name in by_start) for name, each in secrets.items()}


def grants_in(references: Iterable[tuple[str, ...]], scope: Mapping[str, Any]) -> list[str]:
    """The secrets that the expressions with these references name, in order.

    Raises:
        SecretError: there are some, and data that the expressions also take could be, or become, a reference.
    """
    known: Mapping[str, str] = scope.get(SECRETS, {})
    if not known:
        return []
    references = set(references)
    named = set(known) if ("vars",) in references else {each[1] for each in references if each[0] == "vars"}
    grants = [known[name] for name in sorted(named) if name in known]
    if grants:
        for root in {each[:2] if each[0] in ("steps", "vars") else each[:1] for each in references}:
            value: Any = scope
            for part in root:
                value = value.get(part) if isinstance(value, Mapping) else None
            if value not in grants:
                check_data(value, ".".join(root))
    return grants


def check_data(value: Any, what: str) -> None:
    """Return if no text in this data could be, or become, a reference.

    Raises:
        SecretError: there is one.
    """
    for text in _texts(value):
        if OPEN in text or CLOSE in text:
            raise SecretError("?", f"is named by {what}; only the document can do that, so this step is not called")


def _texts(value: Any) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield str(key)
            yield from _texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _texts(each)


# -- Their values ------------------------------------------------------------------------------------------


def find_value(name: str, env: str | None = None) -> str:
    """The value of a secret: of the file or folder that the settings name, or of the environment.

    Raises:
        SecretError: there is none, or none that can be used.
    """
    from outlive._features.flows.outside import settings  # A program that only defines flows needs none of it.

    known = settings.current()
    bounds, place = known.bounds_of(name), known.secrets
    if env is not None and bounds.env not in (None, env):
        raise SecretError(name, f"has its value in {bounds.env} by the settings, and the document names {env}")
    variable = bounds.env or env or f"{settings.ENVIRONMENT}{name.upper()}"
    if (owner := known.secret_with(variable)) not in (None, name.lower()):
        raise SecretError(name, f"cannot have its value in {variable}, which is that of the secret {owner}")
    value = None if place is None else _stored(Path(place), name)
    if value is None:
        value = os.environ.get(variable)
    if value is None:
        where = "" if place is None else f" in {place}, or"
        raise SecretError(name, f"has no value here: set it{where} as the environment variable {variable}")
    if len(value) < CHARACTERS_MIN:
        reason = f"has fewer than {CHARACTERS_MIN} characters, so it could not be kept out of results and errors"
        raise SecretError(name, reason)
    return value


def _stored(place: Path, name: str) -> str | None:
    try:
        if place.is_dir():
            file = place / name
            return file.read_text("utf-8").rstrip("\r\n") if file.is_file() else None
        value = tomllib.loads(place.read_text("utf-8")).get(name)
    except (OSError, ValueError) as error:
        # The message of a parser may quote the line.
        raise SecretError(name, f"cannot be read from {place}: {type(error).__name__}") from None
    if value is not None and not isinstance(value, str):
        raise SecretError(name, f"is not text in {place}")
    return value


class Revealed:
    """The values of the secrets that one attempt of a step uses."""

    def __init__(self, grants: Iterable[str], *, to: str | None) -> None:
        """`to`: what gets them, in the words of the settings; None for requests, which say where they go as they go."""
        self._grants = frozenset(grants)
        self._to = to
        self._values: dict[str, str] = {}
        self._bounds: dict[str, Bounds] = {}

    @property
    def bounds(self) -> tuple[Bounds, ...]:
        """Where requests may go that have them."""
        return tuple(self._bounds.values())

    def value_of(self, reference: str) -> str:
        """The value of a reference.

        Raises:
            SecretError: the step may not use it, or it has none.
        """
        if reference not in self._values:
            found = _REFERENCE.fullmatch(reference)
            assert found is not None
            if reference not in self._grants:
                raise SecretError(found[2], "is not named in the `with` of this step, so it may not use it")
            self._values[reference] = self._take(found[2], found[3] or None, is_named=True, by_start=bool(found[1]))
        return self._values[reference]

    def own(self, name: str) -> str:
        """The value of a secret that the settings give to what is called here. No reference in data means it.

        Raises:
            SecretError: it has none.
        """
        self._values[name] = self._take(name, None, is_named=False)
        return self._values[name]

    def _take(self, name: str, env: str | None, *, is_named: bool, by_start: bool = False) -> str:
        from outlive._features.flows.outside import settings

        bounds = settings.current().bounds_of(name)
        if is_named and (flow := _flow_here()) is not None:
            bounds.check_flow(flow)
        if by_start:
            bounds.check_bound()
        if self._to is not None:
            bounds.check_use(self._to)
        self._bounds[name] = bounds
        return find_value(name, env)

    def resolve(self, value: Any) -> Any:
        """Plain data with values in place of references."""
        if isinstance(value, str):
            return _REFERENCE.sub(lambda found: self.value_of(found[0]), value) if OPEN in value else value
        if isinstance(value, dict):
            return {self.resolve(key): self.resolve(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.resolve(each) for each in value]
        return value

    # -- What comes out ------------------------------------------------------------------------------------

    def blot(self, value: Any) -> Any:
        """Plain data without the values, also in the forms in which requests carry them."""
        pattern = self._pattern()
        return value if pattern is None else _blotted(value, pattern)

    def blot_cut(self, text: str, *, is_cut: bool) -> str:
        """Text without the values, of which only the beginning is there: what its end has of a value goes too."""
        blotted = str(self.blot(text))
        longest = max((len(form) for value in self._values.values() for form in _forms(value)), default=0)
        return blotted[: max(0, len(blotted) - longest)] if is_cut and longest else blotted

    def blot_error(self, error: Exception) -> Exception:
        """The error without the values: the same one where that can be, else one that says the same."""
        pattern = self._pattern()
        if pattern is None or not _leaks(error, pattern):
            return error
        kind = f"{type(error).__module__}.{type(error).__qualname__}".removeprefix("builtins.")
        said = pattern.sub(BLOTTED, str(error))
        with suppress(Exception):  # An exception of a user may refuse to be changed.
            error.args = tuple(_blotted(each, pattern) for each in error.args)
            for name, value in vars(error).items():
                setattr(error, name, _blotted(value, pattern))
            error.__cause__, error.__context__ = None, None
            if not _leaks(error, pattern):
                return error
        return StepFailedError(said, type_name=kind)

    def _pattern(self) -> re.Pattern[str] | None:
        forms = {form for value in self._values.values() for form in _forms(value)}
        # The longest first: one secret may begin like another.
        return re.compile("|".join(map(re.escape, sorted(forms, key=len, reverse=True)))) if forms else None


def _forms(value: str) -> Iterable[str]:
    """A value as text, in a URL, in JSON, and in Base64 wherever it begins."""
    yield value
    yield quote(value, safe="")
    yield quote_plus(value)
    yield msgspec.json.encode(value).decode()[1:-1]
    data = value.encode()
    for shift in range(3):
        # Without what depends on the neighbours.
        packed = base64.b64encode(b"\0" * shift + data).decode().rstrip("=")
        inner = packed[(0, 2, 3)[shift] : len(packed) - 1 if (len(data) + shift) % 3 else len(packed)]
        if len(inner) >= PACKED_CHARACTERS_MIN:
            yield inner


def _blotted(value: Any, pattern: re.Pattern[str]) -> Any:
    if isinstance(value, str):
        return pattern.sub(BLOTTED, value)
    if isinstance(value, dict):
        return {_blotted(key, pattern): _blotted(each, pattern) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_blotted(each, pattern) for each in value)
    return value


def _leaks(error: BaseException | None, pattern: re.Pattern[str], depth: int = 10) -> bool:
    if error is None or not depth:
        return False
    shown = [str(error), repr(error.args), repr(vars(error)), *getattr(error, "__notes__", ())]
    if any(pattern.search(str(each)) for each in shown):
        return True
    return _leaks(error.__cause__, pattern, depth - 1) or _leaks(error.__context__, pattern, depth - 1)


def _flow_here() -> str | None:
    """The flow whose step this is; None where a step is tried without a run."""
    try:
        return current_step().workflow
    except NotInRunError:
        return None


# -- Steps of users ----------------------------------------------------------------------------------------

_GRANTED: contextvars.ContextVar[Revealed] = contextvars.ContextVar("outlive_secrets")


def reveal(reference: str) -> str:
    """The value of a secret that a flow gave to this step. Text without a reference is returned as it is.

    Raises:
        SecretError: the step of the flow does not name this secret, or it has no value here.
    """
    if OPEN not in reference:
        return reference
    granted = _GRANTED.get(None) or Revealed((), to=None)
    return str(granted.resolve(reference))


@contextmanager
def granted(grants: Iterable[str], *, to: str | None = None) -> Iterator[Revealed]:
    """Let the code inside use these secrets, and blot them out of the errors that leave it; for `to` see `Revealed`."""
    revealed = Revealed(grants, to=to)
    token, redacting = _GRANTED.set(revealed), REDACT.set(revealed.blot)
    try:
        yield revealed
    except Exception as error:
        shown = revealed.blot_error(error)
        if shown is error:
            raise
        raise shown from None
    finally:
        REDACT.reset(redacting)
        _GRANTED.reset(token)


def granting(fn: Callable[..., Any], grants: Iterable[str], *, to: str, is_async: bool) -> Callable[..., Any]:
    """The function of the step `to`, allowed to `reveal` these secrets; what comes out of it has none of them."""
    grants = tuple(grants)

    @functools.wraps(fn)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        with granted(grants, to=to) as revealed:
            return revealed.blot(await fn(*args, **kwargs))

    @functools.wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        with granted(grants, to=to) as revealed:
            return revealed.blot(fn(*args, **kwargs))

    return call_async if is_async else call
