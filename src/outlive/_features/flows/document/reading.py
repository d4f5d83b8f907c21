"""From the text of a document to plain JSON data, with the place of every value.

YAML 1.2 with its core schema: `no`, `on`, dates and `12:30:45` are text. JSON is YAML. What a reader of the text could
misunderstand, or what could grow in memory, is refused: anchors, aliases and merge keys, tags, duplicate keys, several
documents, numbers that JSON cannot keep.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from outlive._features.flows.document.positions import Extent, Mark, Positions, place_at, place_of
from outlive._features.flows.document.problems import PROBLEMS_LOOKED_FOR
from outlive.errors.document import FlowError, Path, Problem, dotted, placed

if TYPE_CHECKING:
    import yaml

BYTES_MAX = 1024 * 1024
DEPTH_MAX = 50
VALUES_MAX = 200_000
"""With those in maps and lists, and their keys: what a document costs is what it holds, and not how long it is."""

_CONSTANTS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_NUMERIC = frozenset("0123456789+-.")
_SURROGATES = re.compile(r"\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_INTEGER_MIN, _INTEGER_MAX = -(2**63), 2**64 - 1


@dataclass(frozen=True, slots=True)
class Reading:
    """The content of a text, with its positions."""

    data: Any
    positions: Positions
    file: str = ""


def read(text: str | bytes, file: str = "") -> Reading:
    """Read a document.

    Raises:
        FlowError: it is not YAML or JSON that we take.
    """
    plain = _plain_text(text, file)
    reader = _Reader(plain)
    reader.read()
    if reader.problems:
        raise FlowError(reader.problems, file)
    return Reading(reader.root, reader.positions, file)


def is_number(text: str) -> bool:
    """Whether this text without quotes would be a number."""
    return any(each.fullmatch(text) is not None for each in (_INTEGER, _BASED, _FLOAT, _NOT_FINITE))


def _plain_text(text: str | bytes, file: str) -> str:
    try:
        size = len(text) if isinstance(text, bytes) else len(text.encode())
        if size > BYTES_MAX:
            message = f"the document has {size:,} bytes, and {BYTES_MAX:,} are the most"
            problem = Problem(code="too-large", message=message, suggestion="put large data into a blob or a file")
            raise FlowError([placed(problem, 1, 1)], file)
        plain = text if isinstance(text, str) else text.decode()
    except UnicodeError as error:
        message = f"the document is not UTF-8 text: {error.reason if hasattr(error, 'reason') else error}"
        raise FlowError([Problem(code="encoding", message=message, line=1, column=1)], file) from None
    plain = plain.removeprefix("\ufeff")
    # JSON writes a character beyond U+FFFF as two escapes, which YAML does not know.
    return _SURROGATES.sub(_one_escape, plain) if plain.lstrip().startswith("{") else plain


def _one_escape(found: re.Match[str]) -> str:
    at = found.start()
    while at and found.string[at - 1] == "\\":
        at -= 1
    if (found.start() - at) % 2:  # The backslash is escaped itself.
        return found[0]
    high, low = int(found[1], 16), int(found[2], 16)
    return f"\\U{0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00):08X}"


class _Stop(Exception):
    """Nothing after this can be read."""


class _Open:
    """A map or list whose end was not read yet."""

    __slots__ = ("key", "key_mark", "lines", "path", "value")

    def __init__(self, path: Path, value: dict[str, Any] | list[Any]) -> None:
        self.path = path
        self.value = value
        self.key: str | None = None
        """The key that was read last; the next value is its value."""
        self.key_mark: Mark | None = None
        self.lines: dict[str, int] = {}
        """In which line each key was given."""

    @property
    def wants_key(self) -> bool:
        return self.key is None and type(self.value) is dict


class _Reader:
    """Takes the parser's events one by one, so that depth and aliases are refused before they cost anything."""

    def __init__(self, text: str) -> None:
        self.problems: list[Problem] = []
        self.positions = Positions(text)
        self.root: Any = None
        self._text = text
        self._extents = self.positions.extents
        self._stack: list[_Open] = []
        self._value_end: Mark | None = None
        """Where the value ends that was read last."""
        self._documents = 0
        self._values = 0

    def read(self) -> None:
        import yaml

        take = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: lambda event: self._begin(event, {}),
            yaml.SequenceStartEvent: lambda event: self._begin(event, []),
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
            yaml.DocumentEndEvent: _ignore,
            yaml.StreamStartEvent: _ignore,
            yaml.StreamEndEvent: _ignore,
        }
        try:
            for event in yaml.parse(self._text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
                self._values += 1
                if self._values > VALUES_MAX:
                    message = f"the document has more than {VALUES_MAX:,} values and keys"
                    self._stop("too-large", event, message, "put large data into a blob or a file")
                take[type(event)](event)
        except _Stop:
            return
        except yaml.MarkedYAMLError as error:
            self._refuse_syntax(error)
            return
        except yaml.reader.ReaderError as error:
            self._refuse_character(error)
            return
        if not self._documents:
            problem = Problem(code="empty", message="the document is empty", suggestion="begin with `name:`")
            self.problems.append(placed(problem, 1, 1))

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            self._stop("several-documents", event, "a second document begins here", "put each flow into its own file")
        if event.version not in (None, (1, 2)) or event.tags:
            self._stop("directive", event, "a flow is YAML 1.2 without tags", "remove the lines that begin with %")

    def _alias(self, event: Any) -> None:
        self._stop("alias", event, f"*{event.anchor} repeats another part of the document", "write it out")

    def _scalar(self, event: Any) -> None:
        if event.anchor is not None or event.tag is not None:
            self._refuse_anchor_and_tag(event)
        if self._stack and self._stack[-1].wants_key:
            self._key(self._stack[-1], event)
            return
        path = self._placed(event, is_block=False)
        is_plain = event.style is None or event.style == ""
        self._put(self._resolved(event, event.value, path) if is_plain else event.value)

    def _key(self, top: _Open, event: Any) -> None:
        key, mark = event.value, event.start_mark
        if key == "<<" and event.style in (None, ""):
            self._refuse("merge-key", event, "`<<` merges another map into this one", "write its fields out")
        elif key in top.lines:
            message = f"{dotted((*top.path, key))} is given twice, first in line {top.lines[key]}"
            self._refuse("duplicate-key", event, message, "keep one of the two")
        top.lines[key] = mark.line + 1
        top.key, top.key_mark = key, mark

    def _begin(self, event: Any, value: dict[str, Any] | list[Any]) -> None:
        if event.anchor is not None or event.tag is not None:
            self._refuse_anchor_and_tag(event)
        if self._stack and self._stack[-1].wants_key:
            self._stop("key", event, "a key is text, not a map or a list", "put ${{ }} into quotes if it is meant")
        if len(self._stack) >= DEPTH_MAX:
            self._stop("too-deep", event, f"maps and lists are nested more than {DEPTH_MAX} deep", "nest them less")
        path = self._placed(event, is_block=not event.flow_style)
        self._put(value)
        self._stack.append(_Open(path, value))

    def _end(self, event: Any) -> None:
        path = self._stack.pop().path
        extent = self._extents[path]
        # For the parser a map or list without braces goes on to what comes next, with the comments between.
        is_bare = event.start_mark.index == event.end_mark.index
        end: Mark = event.end_mark if self._value_end is None or not is_bare else self._value_end
        self._value_end = end
        self._extents[path] = Extent(extent.key, extent.begin, end, extent.is_block)

    def _placed(self, event: Any, *, is_block: bool) -> Path:
        """The path of the value that comes now; remembers where it is."""
        path: Path
        key_mark = None
        if not self._stack:
            path = ()
        else:
            top = self._stack[-1]
            if top.key is None:
                path = (*top.path, len(top.value))
            else:
                path, key_mark = (*top.path, top.key), top.key_mark
        self._extents[path] = Extent(key_mark, event.start_mark, event.end_mark, is_block)
        self._value_end = event.end_mark
        return path

    def _put(self, value: Any) -> None:
        if not self._stack:
            self.root = value
            return
        top = self._stack[-1]
        if isinstance(top.value, list):
            top.value.append(value)
        elif top.key is not None:
            top.value[top.key] = value
            top.key = None

    def _resolved(self, event: Any, text: str, path: Path) -> Any:
        """The value of a plain scalar by the core schema of YAML 1.2."""
        if text in _CONSTANTS:
            return _CONSTANTS[text]
        if text[0] not in _NUMERIC:
            return text
        if _INTEGER.fullmatch(text):
            return self._integer(event, text, path)
        if _BASED.fullmatch(text):
            return self._in_range(event, int(text[2:], 8 if text[1] == "o" else 16), text, path)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if math.isfinite(number):
                return number
        elif not _NOT_FINITE.fullmatch(text):
            return text
        self._refuse("number", event, f"{dotted(path)} is {text}, a number that JSON does not have", "quote it")
        return 0.0

    def _integer(self, event: Any, text: str, path: Path) -> int:
        digits = text.lstrip("+-")
        if len(digits) > 1 and digits.startswith("0"):
            message = f"{dotted(path)} is {text[:40]}, a number that begins with 0"
            self._refuse("number", event, message, "quote it if it is text, or remove the zeros")
            return 0
        if len(digits) > len(str(_INTEGER_MAX)):
            return self._in_range(event, _INTEGER_MAX + 1, text, path)
        return self._in_range(event, int(text), text, path)

    def _in_range(self, event: Any, number: int, text: str, path: Path) -> int:
        if not _INTEGER_MIN <= number <= _INTEGER_MAX:
            shown = text if len(text) <= 40 else f"{text[:37]}..."
            self._refuse("number", event, f"{dotted(path)} is {shown}, which needs more than 64 bits", "quote it")
            return 0
        return number

    def _refuse_anchor_and_tag(self, event: Any) -> None:
        if event.anchor is not None:
            self._refuse("anchor", event, f"&{event.anchor} names a part of the document for aliases", "remove it")
        if event.tag is not None:
            self._refuse("tag", event, f"{event.tag} is a tag; types come from the field", "remove it")

    def _refuse(self, code: str, event: Any, message: str, suggestion: str) -> None:
        problem = Problem(code=code, message=message, suggestion=suggestion)
        self.problems.append(placed(problem, *place_of(event.start_mark)))
        if len(self.problems) > PROBLEMS_LOOKED_FOR:
            raise _Stop

    def _stop(self, code: str, event: Any, message: str, suggestion: str) -> None:
        self._refuse(code, event, message, suggestion)
        raise _Stop

    def _refuse_syntax(self, error: yaml.MarkedYAMLError) -> None:
        mark = error.problem_mark or error.context_mark
        if mark is not None and error.context_mark is not None and not self._text[mark.index :].strip():
            mark = error.context_mark  # The end of the text says nothing; what is not closed does.
        line, column = (1, 1) if mark is None else place_of(mark)
        context = f"{error.context}, " if error.context else ""
        lines = self._text.splitlines()
        written = lines[line - 1] if line <= len(lines) else ""
        message = f"this is not YAML: {context}{error.problem or 'it cannot be read'}"
        advice = _advice_on_syntax(written, error)
        self.problems.append(Problem(code="syntax", message=message, suggestion=advice, line=line, column=column))

    def _refuse_character(self, error: yaml.reader.ReaderError) -> None:
        found = error.character
        code = ord(found) if isinstance(found, str) else found
        index = next((at for at, each in enumerate(self._text) if ord(each) == code), 0)
        message = f"the character U+{code:04X} is not allowed in YAML"
        suggestion = "remove it, or write it as an escape in double quotes"
        problem = Problem(code="character", message=message, suggestion=suggestion)
        self.problems.append(placed(problem, *place_at(self._text, index)))


_MISPLACED = ("did not find expected key", "expected <block end>, but found '<block mapping start>'")
"""How the two parsers say that a line is indented otherwise than those before it."""


def _advice_on_syntax(written: str, error: yaml.MarkedYAMLError) -> str:
    """Advice for the most frequent mistakes."""
    if "\t" in written[: len(written) - len(written.lstrip())] or "'\\t'" in (error.problem or ""):
        return "indent with spaces, not with tabs"
    if "${{" in written:
        return 'put text with ${{ }} into quotes: "${{ input.id }}"'
    if (error.problem or "").startswith("mapping values are not allowed"):
        return "put text that holds `: ` into quotes, and indent the fields of one map alike"
    if (error.context or "").endswith(("quoted scalar", "flow sequence", "flow mapping")):
        return "close what begins here"
    if (error.problem or "") in _MISPLACED:
        return "indent the fields of one map alike, and look for a brace or quote too many"
    return ""


def _ignore(event: Any) -> None:
    """It says nothing that we need."""
