"""Exceptions as data: everything worth keeping goes in, nothing dangerous comes out."""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import outlive
from outlive._kernel.journal.codec import open_row, salt_of, seal
from outlive._kernel.journal.failure import OWN_ERRORS, exception_of, failure_of
from outlive._kernel.model import Failure
from outlive._kernel.model.failure import RENAMED
from outlive.errors import StepFailedError, StepTimeoutError, UnserialisableError
from outlive.events import RunFailed
from tests.journal.values import PLAIN, QUICK, is_same

SALT = salt_of(1)
ROW_BYTES_MAX = 3_000_000
"""However huge an exception is, its row stays below this."""


def through_a_row(error: BaseException) -> Failure:
    """An exception as it lies in a journal."""
    row = seal(RunFailed(at=1, failure=failure_of(error)), salt=SALT, seq=1)
    assert len(row[3]) < ROW_BYTES_MAX
    event = open_row(row, salt=SALT, run_id="r")
    assert isinstance(event, RunFailed)
    return event.failure


def again(error: BaseException, *registered: type[BaseException]) -> BaseException:
    """An exception that went through a journal."""
    return exception_of(through_a_row(error), registered=registered, step="work", attempts=2)


def raised(fail: Callable[[], Any]) -> BaseException:
    """What a function raises, with its traceback."""
    try:
        fail()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


# -- Classes that are known -----------------------------------------------------------------------------------

BUILTIN = [
    ValueError("plain"),
    ValueError(),
    ValueError("two", 2, None, (3, {"x": b"y"})),
    KeyError("key"),
    IndexError(5),
    ZeroDivisionError("1/0"),
    TimeoutError(),
    NotImplementedError("later"),
    OSError("only text"),
    OSError(28, "no space left"),
    FileNotFoundError(2, "no such file", "/tmp/x"),
    FileExistsError(17, "exists", b"bytes"),
    OSError(18, "cross-device", "from", None, "to"),
    ConnectionResetError(104, "reset"),
    UnicodeDecodeError("utf-8", b"\xff\x00", 0, 1, "invalid start byte"),
    UnicodeEncodeError("ascii", "\xe9", 0, 1, "ordinal not in range"),
    SyntaxError("bad", ("file.py", 3, 7, "x = = 1")),
    ImportError("no module"),
    AttributeError("no attribute"),
    RecursionError("too deep"),
    StopAsyncIteration("done"),
    AssertionError({"a": 1}),
    UserWarning("careful"),
]


@pytest.mark.parametrize("error", BUILTIN, ids=repr)
def test_a_builtin_exception_comes_back_as_itself(error: BaseException) -> None:
    """Class, arguments, text and the fields that Python keeps outside of the arguments."""
    back = again(error)

    assert type(back) is type(error)
    assert back.args == error.args
    assert str(back) == str(error)
    for name in ("errno", "strerror", "filename", "filename2", "start", "end", "reason", "lineno", "object"):
        assert getattr(back, name, None) == getattr(error, name, None), name


def test_every_builtin_class_is_covered_or_becomes_step_failed() -> None:
    """No builtin class breaks the way back, whatever its constructor wants."""
    classes = [each for each in vars(builtins).values() if isinstance(each, type) and issubclass(each, BaseException)]
    assert len(classes) > 60
    for cls in classes:
        back = exception_of(Failure(type=cls.__qualname__, message="m", args=["m"]))
        assert type(back) is cls or type(back) is StepFailedError, cls
        assert isinstance(back, Exception), cls


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit(), BaseException("b")], ids=repr)
def test_no_name_in_data_ends_a_program(error: BaseException) -> None:
    """A failure whose class is not an `Exception` comes back as `StepFailedError`, because raising it would end the
    program. [S18]"""
    back = again(error)

    assert isinstance(back, StepFailedError)
    assert back.type_name == type(error).__name__


def test_stop_iteration_becomes_step_failed() -> None:
    """No future and no coroutine can raise it; a sync step that calls next() too often raises it all the same."""
    back = again(raised(lambda: next(iter([]))))

    assert isinstance(back, StepFailedError)
    assert back.type_name == "StopIteration"


class OutOfStock(Exception):
    """Takes other arguments than it keeps."""

    def __init__(self, item: str, *, left: int, warehouse: str = "north") -> None:
        super().__init__(f"{left} x {item}")
        self.item, self.left, self.warehouse = item, left, warehouse
        self._private = object()


class NotEnough(OutOfStock):
    """A class below one that is registered."""


class Denied(PermissionError):
    """A builtin class with more on it."""

    def __init__(self, path: str, who: str) -> None:
        super().__init__(13, f"{who} may not", path)
        self.who = who


@pytest.mark.parametrize("registered", [(OutOfStock,), (KeyError, OutOfStock)])
def test_a_registered_class_comes_back_as_itself(registered: tuple[type[BaseException], ...]) -> None:
    """Past its constructor, with its arguments and public attributes."""
    back = again(OutOfStock("shoes", left=3), *registered)

    assert type(back) is OutOfStock
    assert (back.item, back.left, back.warehouse, str(back)) == ("shoes", 3, "north", "3 x shoes")


def test_a_class_below_a_registered_one_is_registered() -> None:
    """Who registers a base means what is derived from it."""
    assert type(again(NotEnough("hats", left=0), OutOfStock)) is NotEnough


def test_a_class_of_the_user_below_a_builtin_one_keeps_the_fields_of_both() -> None:
    """A class of the user below OSError keeps its own fields and the fields that Python sets, such as errno."""
    back = again(Denied("/etc", "ann"), Denied)

    assert isinstance(back, Denied)
    assert (back.errno, back.filename, back.who, str(back)) == (13, "/etc", "ann", "[Errno 13] ann may not: '/etc'")


@pytest.mark.parametrize("registered", [(), (KeyError,), (Exception,), (BaseException,), (NotEnough,)])
def test_any_other_class_comes_back_as_step_failed(registered: tuple[type[BaseException], ...]) -> None:
    """With everything that is known of it. To register `Exception` is to register nothing in particular."""
    back = again(raised(lambda: _fail_with(OutOfStock("shoes", left=3))), *registered)

    assert type(back) is StepFailedError
    assert back.type_name == f"{__name__}.OutOfStock"
    assert (back.step, back.message, back.attempts) == ("work", "3 x shoes", 2)
    assert back.attributes == {"item": "shoes", "left": 3, "warehouse": "north"}
    assert "_fail_with" in back.traceback_text


def _fail_with(error: BaseException) -> None:
    raise error


@pytest.mark.parametrize("error", [StepTimeoutError("work", 3.5), UnserialisableError("it", "$", "X", "no")])
def test_errors_of_ours_reach_the_workflow_as_themselves(error: Exception) -> None:
    """A timeout of a step is a TimeoutError there, as everybody expects."""
    back = again(error, *OWN_ERRORS)

    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back).items() >= vars(error).items()


@pytest.mark.parametrize(
    "name",
    [
        "antigravity.Error",
        "os.system",
        "subprocess.CalledProcessError",
        "eval",
        "print",
        "int",
        "object",
        "__import__",
        "builtins.ValueError",
        "",
        ".",
        "ValueError.args",
        f"{__name__}.OutOfStock",
    ],
)
def test_a_name_in_the_data_imports_and_calls_nothing(name: str) -> None:
    """Only a class that the step registered, or a builtin exception, is ever built."""
    back = exception_of(Failure(type=name, message="m", args=["true"], attributes={"x": 1}))

    assert type(back) is StepFailedError
    assert back.type_name == name
    assert "antigravity" not in sys.modules


# -- What hangs on an exception -------------------------------------------------------------------------------


def test_the_chain_of_causes_is_kept() -> None:
    """Explicit causes and implicit contexts, unless the code suppressed them."""

    def fail() -> None:
        try:
            try:
                raise KeyError("deepest")
            except KeyError as error:
                raise OutOfStock("shoes", left=1) from error
        except OutOfStock:
            raise ValueError("top")  # noqa: B904

    back = again(raised(fail), OutOfStock)

    assert str(back) == "top"
    assert type(back.__cause__) is OutOfStock
    assert type(back.__cause__.__cause__) is KeyError


def test_a_suppressed_context_stays_suppressed() -> None:
    """`raise ... from None` hides what came before."""

    def fail() -> None:
        try:
            raise KeyError("hidden")
        except KeyError:
            raise ValueError("top") from None

    assert again(raised(fail)).__cause__ is None


class Falsy(Exception):
    """An exception that is not true."""

    def __bool__(self) -> bool:
        return False

    def __len__(self) -> int:
        return 0


def test_an_exception_that_is_not_true_is_kept_all_the_same() -> None:
    """An exception that counts as false comes back as itself, alone and as a cause."""
    error = ValueError("top")
    error.__cause__ = Falsy("cause")

    back = again(error, Falsy)
    assert type(back.__cause__) is Falsy
    assert type(again(Falsy("alone"), Falsy)) is Falsy


def test_a_circle_of_causes_ends() -> None:
    """Python allows an exception to be its own cause's cause."""
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one

    back: BaseException | None = again(one)
    for _ in range(20):
        back = back.__cause__ if back is not None else None
    assert back is None


def test_notes_are_kept() -> None:
    """The notes of an exception are kept as text, in order."""
    error = ValueError("noted")
    error.add_note("first")
    error.add_note("second \udcff")

    assert again(error).__notes__ == ["first", "second \\udcff"]


@pytest.mark.parametrize("notes", [5, None, "text", [1, None], [object()], {"a": 1}])
def test_odd_notes_do_not_cost_the_failure(notes: Any) -> None:
    """Anybody can set anything there."""
    error = ValueError("odd")
    error.__notes__ = notes

    assert str(again(error)) == "odd"


class Unprintable(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


def test_a_broken_str_does_not_cost_the_failure() -> None:
    """The message says what happened to it."""
    failure = through_a_row(Unprintable("x"))

    assert failure.message == "<str() of Unprintable raised RuntimeError>"
    assert type(exception_of(failure, registered=[Unprintable])) is Unprintable


class Odd(Exception):
    """Attributes of all kinds."""


def test_an_attribute_that_cannot_be_stored_is_left_out() -> None:
    """An attribute of an exception that cannot be stored is left out, and the others are kept."""
    error = Odd("text", 5)
    error.good = {"n": (1, 2)}  # type: ignore[attr-defined]
    error.nothing = None  # type: ignore[attr-defined]
    error.bad = object()  # type: ignore[attr-defined]
    error.worse = lambda: 1  # type: ignore[attr-defined]
    error.circle = circle = []  # type: ignore[attr-defined, var-annotated]
    circle.append(circle)

    back = again(error, Odd)

    assert {name: value for name, value in vars(back).items() if name[0] != "_"} == {
        "good": {"n": (1, 2)},
        "nothing": None,
    }
    assert back.args == ("text", 5)


def test_arguments_that_cannot_be_stored_become_the_message() -> None:
    """A connection, a lock, a response: what is left is what was said."""
    error = Odd("text", open)

    back = again(error, Odd)

    assert type(back) is Odd
    assert back.args == (str(error),)


class Sealed(Exception):
    """Its attribute cannot be set from outside."""

    def __init__(self) -> None:
        super().__init__("sealed")
        self.__dict__["value"] = 3

    @property
    def value(self) -> int:
        """Read only."""
        return 3


def test_a_class_that_cannot_be_rebuilt_comes_back_as_step_failed() -> None:
    """A registered class with a will of its own does not break the run."""
    back = again(Sealed(), Sealed)

    assert type(back) is StepFailedError
    assert back.attributes == {"value": 3}


@pytest.mark.parametrize("where", ["message", "argument", "attribute", "note", "set"])
def test_text_with_a_lone_surrogate_does_not_lose_the_failure(where: str) -> None:
    """A failure whose text has a lone surrogate, as file names of other systems do, is kept."""
    text = "caf\udce9"
    error = Odd(text) if where == "message" else Odd("fine", {text}) if where == "set" else Odd("fine")
    if where == "argument":
        error.args = ("fine", [text])
    elif where == "attribute":
        error.path = text  # type: ignore[attr-defined]
    elif where == "note":
        error.add_note(text)

    back = again(error, Odd)

    assert "caf\\udce9" in str(back) or "fine" in str(back)


@pytest.mark.parametrize("where", ["message", "arguments", "attribute", "attributes", "notes", "note", "cause"])
def test_a_huge_exception_does_not_make_a_huge_row(where: str) -> None:
    """A step puts a whole response into an exception; the journal keeps its beginning."""
    huge = "x" * 2_000_000
    error = Odd(huge) if where == "message" else Odd("small")
    if where == "arguments":
        error.args = tuple("y" * 100 for _ in range(20_000))
    elif where == "attribute":
        error.body = huge  # type: ignore[attr-defined]
    elif where == "attributes":
        vars(error).update({f"a{n}": "z" * 1000 for n in range(20_000)})
    elif where == "notes":
        error.__notes__ = ["n"] * 100_000
    elif where == "note":
        error.add_note(huge)
    elif where == "cause":
        error.__cause__ = Odd(huge)

    back = again(error, Odd)

    assert type(back) is Odd
    assert str(back)[:5] in ("xxxxx", "small", "('yyy")


def test_a_deep_recursion_keeps_the_end_of_its_traceback() -> None:
    """The end says what happened."""

    def deeper(n: int) -> None:
        _ = [0] * n
        deeper(n + 1) if n < 900 else _fail_with(ValueError("at the bottom"))

    failure = failure_of(raised(lambda: deeper(0)))

    assert len(failure.traceback) <= 20_000
    assert "at the bottom" in failure.traceback


def test_the_traceback_begins_in_the_code_of_the_user() -> None:
    """How the engine called it says nothing."""
    failure = failure_of(raised(lambda: _fail_with(ValueError("x"))))

    assert failure.traceback.startswith("Traceback (most recent call last):\n")
    assert failure.traceback.endswith("ValueError: x\n")


def test_an_exception_group_is_kept_as_text() -> None:
    """Its members cannot be built again, so it comes as StepFailedError; the text names all of them."""
    back = again(ExceptionGroup("both", [ValueError("one"), ExceptionGroup("inner", [KeyError("two")])]))

    assert type(back) is StepFailedError
    assert back.type_name == "ExceptionGroup"
    assert "both (2 sub-exceptions)" in str(back)
    assert "ValueError: one" in back.traceback_text
    assert "KeyError: 'two'" in back.traceback_text


def test_a_traceback_that_cannot_be_printed_does_not_cost_the_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Printing a traceback reads source files and calls code of the user."""
    monkeypatch.setattr(traceback, "format_exception", lambda *_, **__: 1 / 0)

    assert str(again(ValueError("x"))) == "x"


@QUICK
@given(args=st.lists(PLAIN, max_size=3), attributes=st.dictionaries(st.sampled_from(["a", "b"]), PLAIN))
def test_plain_arguments_and_attributes_come_back_exactly(args: list[Any], attributes: dict[str, Any]) -> None:
    """Tuples as tuples, sets as sets, numbers as numbers."""
    error = Odd(*args)
    vars(error).update(attributes)

    back = again(error, Odd)

    assert is_same(back.args, tuple(args))
    assert is_same({name: getattr(back, name) for name in attributes}, attributes)


def test_a_message_that_looks_like_a_traceback_costs_nothing() -> None:
    """Whatever stands in the text of an exception, it can be raised again and printed."""
    lines = [
        '  File "a.py", line 99999999999999999999, in far',
        '  File "b.py", line 7, in near',
        '  File "", line 1, in ',
    ]
    back = again(ValueError("\n".join(["x", *lines])))

    assert type(back) is ValueError
    assert 'File "b.py", line 7, in near' in "".join(traceback.format_exception(back))


@pytest.mark.parametrize("name", sorted(RENAMED))
def test_a_class_is_found_by_the_name_that_it_had(name: str) -> None:
    """Journals, exports and servers of earlier releases say `StepFailed` for what is `StepFailedError` today."""
    cls = getattr(outlive.errors, RENAMED[name].rpartition(".")[2])

    assert type(exception_of(Failure(name, "no"), registered=[cls])) is cls


def test_a_failure_of_a_step_names_its_class_under_both_names() -> None:
    """A stored StepFailed or StepFailedError is listed under the class that its step raised."""
    for name in ("StepFailed", "StepFailedError"):
        assert Failure(f"outlive.errors.{name}", attributes={"type_name": "shop.LeakError"}).error == "shop.LeakError"
