"""The document of a flow: the typed model that gives validation, the JSON Schema for editors, and the hash.

A field may be added with a default. A default never changes within one `language`: it is left out of the canonical
form, so the hash would stay and the meaning would not.
"""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType, field

from outlive._features.schedules.schedule import Overlap
from outlive._kernel.model.span import SPAN, seconds_in
from outlive._kernel.model.trigger import Layout

LANGUAGE = 1
NAME = r"^[A-Za-z_][A-Za-z0-9_.-]*$(?!\n)"
"""Flows and steps: as any name in a journal."""
USE = r"^([A-Za-z0-9_][A-Za-z0-9_.:-]*/)?[A-Za-z_][A-Za-z0-9_.-]*$(?!\n)"
"""The code that a step calls: a name, or a remote step behind its queue (`gpu/resize`)."""
IDENTIFIER = r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)"
"""Steps of a flow, its inputs and variables: what an expression can say after a dot."""
METHOD = "^[A-Za-z]{1,20}$"
"""The method of a request over HTTP."""
NAME_CHARACTERS_MAX = 128
ERROR = "^(?!(BaseException|BaseExceptionGroup|GeneratorExit|KeyboardInterrupt|SystemExit)$)"
"""The name of an error in a document: any name but those of Python's exceptions outside `Exception`, because they end
programs."""
INSTANT = r"^\d{4}-?\d{2}-?\d{2}([T ][0-9:.,]+(Z|[+-][0-9:]+)?)?$(?!\n)"
SHARE = r"^(100(\.0+)?|\d{1,2}(\.\d+)?)%?$(?!\n)"
"""A share of all items."""
OVERRIDABLE = r"^(if|retry|timeout|heartbeat_timeout|limit|with\.[^.\n]{1,128})$(?!\n)"
"""The parts of a step that a document may let a start change."""
STEPS_MAX = 10_000
HASH_BITS = 48
"""How many bits of the SHA-256 count: people see them as 12 hex digits, and they are the version of the workflow."""

Span: TypeAlias = Annotated[float, Meta(ge=0)] | Annotated[str, Meta(pattern=SPAN)]
"""How long: "30s", "5m", "1h30m", "250ms", "PT15M", or a number of seconds. `seconds_of` reads it."""
Name: TypeAlias = Annotated[str, Meta(pattern=NAME, max_length=NAME_CHARACTERS_MAX)]
Use: TypeAlias = Annotated[str, Meta(pattern=USE, max_length=NAME_CHARACTERS_MAX)]
Identifier: TypeAlias = Annotated[str, Meta(pattern=IDENTIFIER, max_length=NAME_CHARACTERS_MAX)]
Condition: TypeAlias = bool | str
"""True, false, or an expression."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a document."""


class RetryPolicy(_Part, frozen=True, kw_only=True):
    """When a failed attempt of a step is tried again, and after how long: `outlive.Retry` in a document."""

    attempts: Annotated[int, Meta(ge=1)] | None = 3
    """How often the step is tried at most; null for no end."""
    first: Span = 1.0
    """The delay before the second attempt."""
    factor: Annotated[float, Meta(ge=1, le=1_000)] = 2.0
    """How many times longer each delay is than the one before it."""
    cap: Span = 60.0
    """The longest delay."""
    kind: Literal["exponential", "linear", "fixed", "fibonacci"] = "exponential"
    """How the delay grows."""
    on: list[str | int] = []
    """Names of error types and HTTP statuses that are worth another attempt; empty for all errors."""
    not_on: list[str | int] = []
    """Names of error types and HTTP statuses among them that are not."""
    elapsed_max: Span | None = None
    """No attempt begins later than this after the first one."""


class OnError(_Part, frozen=True, kw_only=True):
    """The reaction to a step whose last attempt has failed: one of the two."""

    use_default: Any = UNSET
    """The result to go on with; expressions may use `error`."""
    retry: RetryPolicy | UnsetType = UNSET
    """Try again, also errors that a component reports itself."""


class Undo(_Part, frozen=True, kw_only=True):
    """The call that takes a step back when the flow fails after it."""

    use: Name
    with_: Any = field(default_factory=dict, name="with")
    """The arguments; expressions may use `result`, the result of the step."""


class FlowStep(_Part, frozen=True, kw_only=True):
    """One step of a flow."""

    use: Use
    """A registered step or workflow, a built-in such as `http` or `map`, or a remote step of a queue: `gpu/resize`."""
    with_: Any = field(default_factory=dict, name="with")
    """Its arguments; text may hold expressions."""
    if_: Condition | None = field(default=None, name="if")
    """The step runs only if this is true; otherwise its result is null."""
    after: list[Identifier] = []
    """Steps that come before it though it uses nothing of them."""
    must_run: bool = False
    """Run it also if neither the output nor another step needs it."""
    retry: RetryPolicy | None = None
    timeout: Span | None = None
    """For one attempt."""
    heartbeat_timeout: Span | None = None
    on_error: Literal["fail"] | OnError = "fail"
    undo: Undo | None = None
    once: bool = False
    """Never call it a second time after a crash; the flow fails instead."""
    queue: str | None = None
    """For a child run: the queue in which it waits for its turn."""
    limit: str | None = None
    """The rate limit that its attempts share with other steps."""
    overridable: list[Annotated[str, Meta(pattern=OVERRIDABLE)]] | None = None
    """The parts of the step that a start may change for one run: `with.amount` is an argument, as a value without
    expressions. Its retry, timeouts and limit unless given; [] for nothing."""
    description: str = ""
    metadata: dict[str, Any] = {}


class Variable(_Part, frozen=True, kw_only=True):
    """A value of the environment: the same for many runs."""

    type: str | None = None
    """A JSON Schema type: string, integer, number, boolean, array, object."""
    schema: dict[str, Any] | None = None
    """A whole JSON Schema, where the type is not enough."""
    default: Any = UNSET
    secret: bool = False
    """Never in a journal, a log or an argument: only the step that uses it sees it."""
    env: str | None = None
    """The environment variable that has it."""
    required: bool = True
    """Whether a run without a value of it is refused."""
    fixed: bool | None = None
    """Whether no start may give it. Unless given: if it is in the address of a step that sends a secret."""
    description: str = ""


class Hmac(_Part, frozen=True, kw_only=True):
    """The key and the layout of the signatures on the requests of a webhook."""

    key: str
    """The secret variable with the key."""
    layout: Layout = "standard"
    """The layout that the signature covers: `standard` as Standard Webhooks has it, `github` as GitHub has it. A
    request in the other layout is refused."""


class Trigger(_Part, frozen=True, kw_only=True):
    """A trigger, which starts runs: exactly one of `event`, `schedule`, `webhook` and `manual`."""

    event: str | None = None
    """The type of an event, for example order.created."""
    schedule: str | None = None
    """A cron expression."""
    webhook: str | None = None
    """The path of a webhook, for example /hooks/orders."""
    manual: bool = False
    if_: Condition | None = field(default=None, name="if")
    """Over `event`: start a run only if this is true."""
    input: Any = UNSET
    """The input of the run, with expressions over `event`; the data of the event if it is left out."""
    timezone: str = "UTC"
    overlap: Overlap = "skip"
    """The policy for a tick while a run of an earlier tick is open."""
    catch_up: Literal["none", "latest", "all"] | Annotated[int, Meta(ge=0)] = "latest"
    """Which ticks are started that passed while no worker was there."""
    token: str | None = None
    """The secret variable with the token that a webhook's caller has to give."""
    hmac: str | Hmac | None = None
    """The signature that a webhook's caller has to give. A name alone is the key of one in the layout `standard`."""


class MockError(_Part, frozen=True, kw_only=True):
    """The error that a mocked step raises."""

    type: str = "Exception"
    message: str = ""


class MockCase(_Part, frozen=True, kw_only=True):
    """The answer of a mocked step to certain arguments: one of `result` and `error`."""

    with_: Any = field(name="with")
    result: Any = UNSET
    error: MockError | UnsetType = UNSET


class Mock(_Part, frozen=True, kw_only=True):
    """A replacement for the work of a step in a test: a `result` or an `error`, or answers by arguments."""

    result: Any = UNSET
    error: MockError | UnsetType = UNSET
    when: list[MockCase] = []
    """Answers by arguments: the first one whose `with` equals what the step is given counts, and `result` or `error`
    if none does. Without these too, the step fails."""


class ExpectedError(_Part, frozen=True, kw_only=True):
    """The error with which a test expects the flow to fail."""

    type: str | None = None
    message: str | None = None
    """Text that the message holds."""


class CaseSignal(_Part, frozen=True, kw_only=True):
    """A signal that a test sends to the run."""

    name: str
    value: Any = None
    after: Span | None = None
    """How long after the start; at once if it is left out."""


class CaseDecision(_Part, frozen=True, kw_only=True):
    """How a test answers an approval."""

    approved: bool = True
    by: str = "test"
    comment: str = ""
    form: Any = UNSET
    after: Span | None = None


class Case(_Part, frozen=True, kw_only=True):
    """A test inside the document: an input, what its steps answer, and what is expected."""

    name: str
    description: str = ""
    input: Any = field(default_factory=dict)
    vars: dict[str, Any] = {}
    overrides: dict[str, Any] = {}
    """JSON merge patches by step."""
    mocks: dict[str, Mock] = {}
    output: Any = UNSET
    """The output that is expected."""
    error: ExpectedError | UnsetType = UNSET
    """The failure that is expected, instead of an output."""
    steps: dict[str, Any] = {}
    """Results that are expected, by step."""
    signals: list[CaseSignal] = []
    approvals: dict[str, CaseDecision] = {}
    """Decisions by step."""
    now: str | None = None
    """The time at which the run starts, for example 2026-01-31T06:00:00Z."""


class Document(_Part, frozen=True, kw_only=True):
    """A flow as it is written."""

    name: Name
    description: str = ""
    language: Annotated[int, Meta(ge=1, le=LANGUAGE)] = LANGUAGE
    """The version of this format."""
    input: dict[Identifier, Any] = {}
    """The JSON Schema of each property, or just its type. It has to be given unless it has a `default` or says
    `required: false`."""
    vars: dict[Identifier, Variable] = {}
    steps: Annotated[dict[Identifier, FlowStep], Meta(min_length=1, max_length=STEPS_MAX)]
    output: Any = UNSET
    """The result of the run, with expressions. Steps that it does not need do not run; without it all steps run."""
    triggers: list[Trigger] = []
    tests: list[Case] = []
    resumable: bool = True
    """Whether a run that lost its worker goes on; otherwise it fails."""
    timeout: Span | None = None
    """For the whole run."""
    concurrency: Annotated[int, Meta(ge=1)] | None = None
    """How many steps run at once."""
    order: Literal["breadth", "depth"] = "breadth"
    """Which of several ready steps begins first, where `concurrency` lets them wait."""
    on_failure: Literal["stop", "finish"] = "stop"
    """When a step has failed: cancel what runs beside it, or let it finish first."""
    retry: RetryPolicy | None = None
    """For all steps that have none of their own."""
    queue: str | None = None
    """The queue in which runs of this flow wait for their turn."""
    metadata: dict[str, Any] = {}

    @property
    def has_output(self) -> bool:
        """Whether it says what its result is, be it null."""
        return self.output is not UNSET


_KEEP_ORDER = ("input", "steps", "vars")
"""Maps whose order people see, and whose order says which of two ready steps begins first."""


def canonical_json(document: Document) -> bytes:
    """The one form of a document: no comments, no defaults, keys sorted; only steps, input and vars stay in order."""
    plain = msgspec.to_builtins(document, order="sorted")
    for name in _KEEP_ORDER:
        if name in plain:
            plain[name] = {key: plain[name][key] for key in getattr(document, name)}
    return msgspec.json.encode(plain)


def canonical(document: Document) -> Document:
    """The document that runs: in this form equal hashes mean equal order everywhere, so that two of them replay
    alike."""
    return from_canonical(canonical_json(document))


def from_canonical(text: bytes) -> Document:
    """Read a document that `canonical_json` wrote."""
    return msgspec.json.decode(text, type=Document)


def version_of(document: Document) -> int:
    """The version of the workflow that runs this document: the first 48 bits of the hash of its content."""
    return version_in(canonical_json(document))


def version_in(text: bytes) -> int:
    """The version of a document that `canonical_json` wrote."""
    return int.from_bytes(hashlib.sha256(text).digest()[: HASH_BITS // 8], "big")


def hash_of(document: Document) -> str:
    """The version of a document as 12 hex digits, for people."""
    return shown_version(version_of(document))


def shown_version(version: int) -> str:
    """A version as 12 hex digits."""
    return f"{version:0{HASH_BITS // 4}x}"


def hmac_of(trigger: Trigger) -> Hmac | None:
    """The signature that a trigger wants, in its long form."""
    return Hmac(key=trigger.hmac) if isinstance(trigger.hmac, str) else trigger.hmac


def seconds_of(span: float | str) -> float:
    """A span of a document in seconds; its form was checked when the document was read."""
    return float((seconds_in(span) or 0) if isinstance(span, str) else span)
