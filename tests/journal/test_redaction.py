"""What people may not see is not shown, wherever it stands, and the rest is."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal.event import AnyEvent
from outlive._kernel.journal.failure import failure_of
from outlive._kernel.journal.redaction import HIDDEN, Redaction, RowNames
from outlive._kernel.journal.tagged import to_plain
from outlive._kernel.model import Payload
from outlive.errors import ConfigurationError
from outlive.events import RunCreated, RunFailed, RunParked, SignalReceived, StepSucceeded
from tests.journal.values import QUICK

SECRET = "hunter2-marker"


def payload(value: Any) -> Payload:
    """A value as it is stored."""
    return Payload(v=msgspec.Raw(msgspec.json.encode(value)))


def shown(
    *events: AnyEvent, fields: tuple[str, ...], names: tuple[str, ...] | RowNames | None = None
) -> list[AnyEvent]:
    """Events as people see them."""
    return Redaction(fields).hide_events(
        events,
        unpack=lambda it: msgspec.json.decode(it.v),  # type: ignore[arg-type]
        names=lambda workflow, version: names,
    )


def text_of(*events: AnyEvent) -> str:
    """Events with everything that is in them."""
    return msgspec.json.encode(events).decode()


def created(*args: Any, **kwargs: Any) -> RunCreated:
    """The first event of a run."""
    given = {"a": list(args), "k": kwargs} if kwargs else list(args)
    return RunCreated(at=1, workflow="w", version=1, input=payload(given))


def input_of(event: AnyEvent) -> Any:
    """The arguments that people see."""
    assert isinstance(event, RunCreated)
    assert event.input.v is not msgspec.UNSET
    return msgspec.json.decode(event.input.v)


# -- Fields ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value", "wanted"),
    [
        ("password", {"password": 1, "user": 2}, {"password": HIDDEN, "user": 2}),
        ("password", {"a": [{"b": {"Password": {"x": 1}}}]}, {"a": [{"b": {"Password": HIDDEN}}]}),
        ("PassWord", {"password": 1}, {"password": HIDDEN}),
        ("card.number", {"card": {"number": 1}, "number": 3}, {"card": {"number": HIDDEN}, "number": 3}),
        ("card.number", {"card": [{"number": 1}]}, {"card": [{"number": HIDDEN}]}),
        ("card.number", {"card": {"data": {"number": 1}}}, {"card": {"data": {"number": 1}}}),
        ("*_token", {"api_token": 1, "tokens": 2}, {"api_token": HIDDEN, "tokens": 2}),
        ("card.*", {"card": {"number": 1, "name": 2}}, {"card": {"number": HIDDEN, "name": HIDDEN}}),
        ("*.token", {"token": 1, "a": {"token": 2}}, {"token": 1, "a": {"token": HIDDEN}}),
        ("pass", {"password": 1}, {"password": 1}),
    ],
)  # fmt: skip
def test_a_field_is_found_by_its_name_and_its_parents(field: str, value: Any, wanted: Any) -> None:
    """At any depth, in lists, in any case, with or without wildcards."""
    assert Redaction([field]).hide(value) == wanted


def test_values_that_are_more_than_json_are_searched_too() -> None:
    """Tuples, and dicts with keys that are not text."""
    value = to_plain({1: ({"pin": SECRET},), "pin": SECRET, "when": {2}}, "the value")

    hidden = Redaction(["pin"]).hide(value)

    assert SECRET not in str(hidden)
    assert hidden["$"][1][2] == ["when", {"$": ["set", [2]]}]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b", "secret", "c.d"]), inner, max_size=3)
    ),
    max_leaves=12,
)


def leaves(value: Any, *, of: str) -> list[Any]:
    """What stands in fields of one name."""
    if isinstance(value, list):
        return [leaf for each in value for leaf in leaves(each, of=of)]
    if isinstance(value, dict):
        here = [value[of]] if of in value else []
        return here + [leaf for key, each in value.items() if key != of for leaf in leaves(each, of=of)]
    return []


@QUICK
@given(JSON)
def test_nothing_but_the_field_is_hidden(value: Any) -> None:
    """Every such field is, and a redaction without fields changes nothing."""
    hidden = Redaction(["secret"]).hide(value)

    assert {HIDDEN} >= set(map(str, leaves(hidden, of="secret")))
    assert len(leaves(hidden, of="secret")) == len(leaves(value, of="secret"))
    assert Redaction([]).hide(value) == value
    assert Redaction(["other"]).hide(value) == value


@pytest.mark.parametrize("fields", ["password", ["a..b"], [""], [3]])
def test_an_invalid_list_of_redacted_fields_is_refused(fields: Any) -> None:
    """`redact` refuses one text, which would be a list of letters, and names that are not fields."""
    with pytest.raises(ConfigurationError, match="redact="):
        Redaction(fields)


# -- Events ---------------------------------------------------------------------------------------------------


def test_arguments_are_fields_by_the_names_of_their_parameters() -> None:
    """By position and by keyword; the other ones are shown."""
    (event,) = shown(created("ann", SECRET), fields=("password",), names=("user", "password"))
    (named,) = shown(created("ann", password=SECRET), fields=("password",), names=("user", "password"))
    (rest,) = shown(created("ann", SECRET, SECRET), fields=("words",), names=("user", "words"))

    assert input_of(event) == ["ann", HIDDEN]
    assert input_of(named) == {"a": ["ann"], "k": {"password": HIDDEN}}
    assert input_of(rest) == ["ann", HIDDEN, HIDDEN]


def test_positional_arguments_of_an_unknown_workflow_are_hidden() -> None:
    """Their names are not known; objects have fields of their own."""
    event = created(SECRET, {"user": "ann", "password": SECRET}, [SECRET])

    assert input_of(shown(event, fields=("password",))[0]) == [HIDDEN, {"user": "ann", "password": HIDDEN}, HIDDEN]
    assert input_of(shown(event, fields=())[0])[0] == SECRET


@pytest.mark.parametrize("value", [{"$": 5}, {"$": ["dict", 5]}, {"$": ["dict", [5]]}, {"$": []}, {"$": None}], ids=str)
def test_a_typed_dict_may_look_like_a_tag(value: Any) -> None:
    """A dict with the key `$` that is not a tag is kept, and redacted fields inside it are hidden."""
    assert Redaction(["secret"]).hide([value, {"secret": SECRET}]) == [value, {"secret": HIDDEN}]
    assert Redaction(["secret"]).hide({"$": {"secret": SECRET}}) == {"$": {"secret": HIDDEN}}


def test_rows_of_a_batch_are_arguments_of_its_items() -> None:
    """Each row is named by the parameter of the step or workflow that takes it."""
    event = created(0, [[SECRET], {"a": [SECRET], "k": {}}])
    (known,) = shown(event, fields=("password",), names=RowNames(("password",)))
    (other,) = shown(event, fields=("password",), names=RowNames(("user",)))
    (unknown,) = shown(event, fields=("password",), names=RowNames(None))

    assert input_of(known) == input_of(unknown) == [0, [[HIDDEN], {"a": [HIDDEN], "k": {}}]]
    assert input_of(other)[1][0] == [SECRET]


def test_a_signal_is_a_field_by_its_name() -> None:
    """The payload of a signal is hidden if its name is redacted, even if it is one text."""
    event = SignalReceived(at=1, name="password", payload=payload(SECRET))

    assert SECRET in text_of(*shown(event, fields=("other",)))
    assert SECRET not in text_of(*shown(event, fields=("password",)))


def test_a_secret_is_blacked_out_of_messages_about_it() -> None:
    """Messages, arguments, notes, tracebacks, attributes, causes and reasons, also of events before it is seen."""
    try:
        try:
            raise ValueError(f"{SECRET} is wrong")
        except ValueError as cause:
            error = RuntimeError(f"no entry with {SECRET}", SECRET)
            error.add_note(f"tried {SECRET}")
            error.tried = [SECRET]  # type: ignore[attr-defined]
            raise error from cause
    except RuntimeError as caught:
        failed = RunFailed(at=2, failure=failure_of(caught))
    parked = RunParked(at=2, reason=f"cannot read {SECRET}")
    known = StepSucceeded(at=3, call="login", result=payload({"password": SECRET}))

    events = shown(failed, parked, known, fields=("password",))

    assert SECRET not in text_of(*events)
    assert "no entry with [redacted]" in text_of(*events)
    assert SECRET in text_of(*shown(failed, fields=()))


def test_the_attributes_of_an_exception_are_fields() -> None:
    """A redacted attribute of an exception is hidden, and its value is hidden in the message, too."""
    error = RuntimeError(f"bad card {SECRET}")
    error.number = SECRET  # type: ignore[attr-defined]

    hidden = Redaction(["number"]).hide_failure(failure_of(error))

    assert hidden.attributes == {"number": HIDDEN}
    assert hidden.message == "bad card [redacted]"


def test_short_secrets_are_not_looked_for_in_text() -> None:
    """A pin of three digits would black out every date."""
    error = RuntimeError("failed at 12:30 with 123")
    error.pin = 123  # type: ignore[attr-defined]

    hidden = Redaction(["pin"]).hide_failure(failure_of(error))

    assert (hidden.message, hidden.attributes) == ("failed at 12:30 with 123", {"pin": HIDDEN})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f'{{"secret": "{SECRET}", "to": "ann"}}', '{"secret": "[redacted]", "to": "ann"}'),
        (f' [{{"card": {{"secret": "{SECRET}"}}}}]', '[{"card": {"secret": "[redacted]"}}]'),
        ('{"to":  "ann"}', '{"to":  "ann"}'),
        ("{not JSON}", "{not JSON}"),
        (f'{{"a": {{"secret": "{SECRET}"}}, "a": 1}}', HIDDEN),
        (f'{{"secret": "{SECRET}", "n": {"9" * 5_000}}}', HIDDEN),
        ("[" * 100_000 + f'{{"secret": "{SECRET}"}}' + "]" * 100_000, HIDDEN),
    ],
)
def test_text_that_is_json_is_looked_into(text: str, shown: str) -> None:
    """Models of language write the arguments of tools so. Text that can be read in two ways, or not to its end, is
    hidden whole. [S30]"""
    secrets: set[str] = set()
    hidden = Redaction(["secret"])

    assert {"arguments": shown} == hidden.hide({"arguments": text}, secrets)
    assert {"arguments": text} == Redaction([]).hide({"arguments": text})
    if HIDDEN in shown and shown != HIDDEN:
        assert {SECRET} == secrets


def test_json_in_json_that_is_text_is_looked_into() -> None:
    """The answer of a tool is text in a message that is text. [S30]"""
    inner = json.dumps({"secret": SECRET})
    assert SECRET not in str(Redaction(["secret"]).hide([json.dumps({"output": json.dumps([inner])})]))
