"""Every setting: its name, its kind, its default, what it means, and what checks it.

A value is checked by the class or the function that takes it in Python, so that a file and a program are refused the
same. The defaults stand in these classes and in `Engine`; a test compares.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import MISSING, fields
from functools import partial
from ipaddress import ip_network
from typing import Any, NamedTuple

from outlive._kernel.model import Limits, Recovery, Retry, given
from outlive._kernel.model.limit import TokenBucket
from outlive._kernel.model.retention import Keep, KeepAudit, archive_of
from outlive._kernel.model.worker import WorkerOptions
from outlive.errors import InvalidArgumentError

VARIABLES = "OUTLIVE_"
"""How the names of variables begin."""
EACH = "*"
"""In the name of a setting: any name that the operator chooses."""
NONE = "none"
"""How a file and a variable say None."""

COMMAND_TABLES, SWITCHES = ("worker", "server"), ("enabled", "mode")
"""The tables that a command is about, and the settings that turn a table on or choose its kind."""

FLAG, WHOLE, NUMBER, SECONDS, TEXT, TEXTS = "true or false", "whole number", "number", "seconds", "text", "list of text"

_PASSWORD = re.compile(r"(//[^:/@\s]*:)\S*@")
_QUERY_PASSWORD = re.compile(r"((?:ssl)?password=)[^&\s'\"]*", re.IGNORECASE)
_FLAGS = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}


def without_password(text: str) -> str:
    """An address, or a text with one, without its password."""
    return _QUERY_PASSWORD.sub(r"\1***", _PASSWORD.sub(r"\1***@", text))


class Setting(NamedTuple):
    """One of the settings."""

    name: str
    """The name in a file: `worker.lease_seconds` is `lease_seconds` in the table `[worker]`."""
    kind: str
    default: Any
    """The value without the setting, for the engine or the command."""
    help: str
    check: Callable[[Any], Any]
    """Gives the value that the engine takes; raises `InvalidArgumentError`."""
    or_none: bool = False
    """Whether `"none"` may be given, for None."""
    is_address: bool = False
    """Whether it may hold a password."""

    @property
    def path(self) -> tuple[str, ...]:
        """Its tables, and its name in the last one."""
        return tuple(self.name.split("."))

    @property
    def variable(self) -> str:
        """The variable of the environment; empty for a setting that only a file can have."""
        return "" if EACH in self.name else VARIABLES + self.name.upper().replace(".", "_")

    @property
    def flag(self) -> str:
        """The option of a command that sets it, where there is one: its name behind that of its table. Commands that
        are about one table leave that out, and a switch (`enabled`, `mode`) is called as its table."""
        *tables, name = self.path
        parts = [each for each in tables if each not in COMMAND_TABLES] + [name] * (name not in SWITCHES)
        return "--" + "-".join(parts).replace("_", "-")

    def checked(self, value: Any) -> Any:
        """The value for the engine, from the value that a file or a caller gives.

        Raises:
            InvalidArgumentError: it cannot be that.
        """
        if self.or_none and value == NONE:
            return None
        return self.check(value.strip() if self.kind == SECONDS and isinstance(value, str) else value)

    def shown(self, value: Any) -> Any:
        """The value for people: without a password."""
        return without_password(value) if self.is_address and isinstance(value, str) else value

    def from_text(self, text: str) -> Any:
        """The value in a variable; the text itself if it does not fit the kind."""
        try:
            if self.kind == FLAG:
                return _FLAGS[text.strip().lower()]
            if self.kind in (WHOLE, NUMBER):
                return int(text) if self.kind == WHOLE else float(text)
        except (KeyError, ValueError):
            return text
        return [part.strip() for part in text.split(",") if part.strip()] if self.kind == TEXTS else text


def _queues(names: Any) -> tuple[str, ...]:
    queues = WorkerOptions(queues=given.texts("WorkerOptions", "queues", names, like="emails")).queues
    return tuple(map(str, queues or ()))


def _networks(values: Any) -> tuple[str, ...]:
    found = given.texts("auth", "proxies", values, like="10.0.0.5")
    for each in found:
        try:
            ip_network(each)
        except ValueError:
            wanted = f"{each!r} is neither an address nor a network; give for example 10.0.0.5 or 10.0.0.0/24"
            raise InvalidArgumentError("auth", "proxies", each, wanted) from None
    return found


def _flag(name: str) -> Callable[[Any], bool]:
    return lambda value: given.flag("Engine", name, value)


def _text(name: str, like: str) -> Callable[[Any], str]:
    return lambda value: given.text("Engine", name, value, like=like, most=given.KEY_CHARACTERS_MAX)


def _choice(name: str, *words: str) -> Callable[[Any], str]:
    return lambda value: given.one_of("log", name, value, words)


def _field(owner: type, name: str) -> Callable[[Any], Any]:
    """The check that a class makes of one of its fields."""
    if owner is Limits:
        # Two of its fields must go together: each alone is only a number.
        return lambda value: given.whole("Limits", name, value)
    return lambda value: getattr(owner(**{name: value}), name)


def _default(owner: type, name: str) -> Any:
    (field,) = (field for field in fields(owner) if field.name == name)
    # A value that depends on the machine has no default that could be written down.
    return None if field.default is MISSING else field.default


def _server_limits(kind: str, helps: dict[str, tuple[Any, str]]) -> list[Setting]:
    check = given.whole if kind == WHOLE else given.seconds
    return [
        Setting(f"server.{name}", kind, default, text, partial(check, "server", name))
        for name, (default, text) in helps.items()
    ]


def _of(table: str, owner: type, kind: str, helps: dict[str, str], *, or_none: bool = False) -> list[Setting]:
    """Settings that are fields of a class."""
    return [
        Setting(f"{table}.{name}", kind, _default(owner, name), text, _field(owner, name), or_none)
        for name, text in helps.items()
    ]


_KEEP = {
    "succeeded": "how long succeeded runs stay; without it, for ever",
    "failed": "how long failed runs stay; without it, for ever",
    "timed_out": "how long timed-out runs stay; without it, as long as `failed`",
    "cancelled": "how long cancelled runs stay; without it, as long as `failed`",
    "continued": "how long earlier generations stay; without it, as long as `succeeded`",
}


def _keep(table: str) -> list[Setting]:
    archive = "a folder, or an fsspec URL, to which runs are written before they are deleted"
    return [
        *_of(table, Keep, SECONDS, _KEEP),
        Setting(f"{table}.archive", TEXT, None, archive, lambda value: archive_of("Keep", value)),
    ]


SETTINGS: tuple[Setting, ...] = (
    Setting("store", TEXT, None, "the URL of the store", _text("url", "sqlite:orders.db"), is_address=True),
    Setting(
        "namespace",
        TEXT,
        None,
        "the namespace of a tenant: a separate store at the same address",
        _text("namespace", "acme"),
    ),
    Setting(
        "redact",
        TEXTS,
        (),
        "fields that are hidden from people",
        lambda value: given.texts("Engine", "redact", value, like="password"),
    ),
    Setting(
        "record_arguments",
        FLAG,
        False,
        "whether journals keep the arguments of steps for people, redacted and cut",
        lambda value: given.flag("Engine", "record_arguments", value),
    ),
    Setting(
        "poll_seconds",
        SECONDS,
        0.25,
        "how often a worker asks the store for runs that other processes made due",
        lambda value: given.seconds("Engine", "poll_seconds", value),
    ),
    Setting(
        "store_seconds",
        SECONDS,
        10.0,
        "how long a verb waits for a store that does not answer; then it raises",
        lambda value: given.seconds("Engine", "store_seconds", value),
    ),
    *_of(
        "worker",
        WorkerOptions,
        TEXT,
        {"name": "a name for this worker alone: set it by a variable, not in a file that workers share"},
    ),
    Setting(
        "worker.queues",
        TEXTS,
        None,
        "the queues that the worker takes runs from, in this order; without it, all queues",
        _queues,
    ),
    Setting(
        "worker.lease",
        TEXT,
        "store",
        'where the worker keeps its lease: "store", "none" or "etcd://host:2379"',
        _text("lease", "store"),
        is_address=True,
    ),
    *_of(
        "worker",
        WorkerOptions,
        SECONDS,
        {
            "lease_seconds": "how long a worker may be silent before others take its runs over",
            "grace_seconds": "how long running steps may take to finish when the worker stops; without it, "
            "20 for `outlive worker`",
        },
    ),
    *_of(
        "worker",
        WorkerOptions,
        FLAG,
        {
            "exit_when_stalled": "whether the process ends, with code 70, when its event loop is blocked; without it, "
            "only `outlive worker` ends",
            "schedules": "whether the worker starts the runs of schedules",
            "flows": "whether the worker runs the flows of the library",
            "tune": "whether the worker may set two switches of the interpreter",
        },
    ),
    *_of(
        "recovery", Recovery, FLAG, {"enabled": "whether this worker takes over runs of lost workers (orphans) at all"}
    ),
    *_of(
        "recovery",
        Recovery,
        WHOLE,
        {
            "orphans_at_start_max": "how many orphans the worker takes at once when it starts",
            "orphans_per_check_max": "how many orphans the worker takes within `check_seconds` later",
        },
    ),
    *_of(
        "recovery",
        Recovery,
        SECONDS,
        {
            "check_seconds": "the span of `orphans_per_check_max`",
            "stale_after": "how long an orphan waits before a worker takes it",
        },
    ),
    *_of("recovery", Recovery, FLAG, {"auto_resume": "whether orphans go on by themselves"}),
    *_of(
        "recovery",
        Recovery,
        SECONDS,
        {"resume_age_max": "orphans that made no progress for longer than this do not go on by themselves"},
        or_none=True,
    ),
    *_of(
        "retry",
        Retry,
        WHOLE,
        {"attempts": 'how often a step without a `retry` is called; `"none"` for no end'},
        or_none=True,
    ),
    *_of(
        "retry",
        Retry,
        SECONDS,
        {"first": "the delay before the second attempt", "cap": "the longest delay between two attempts"},
    ),
    *_of(
        "retry",
        Retry,
        NUMBER,
        {"factor": "the factor by which the delay grows", "jitter": "the random part of the delay"},
    ),
    *_of("retry", Retry, TEXT, {"delay": 'how the delay grows: "exponential", "linear", "fixed" or "fibonacci"'}),
    *_of("retry", Retry, SECONDS, {"elapsed_max": "no attempt begins later than this after the first"}, or_none=True),
    *_keep("retention"),
    Setting(
        "retention.audit",
        SECONDS,
        None,
        "how long rows of the audit log stay; without it, for ever",
        lambda value: KeepAudit(value).keep,
    ),
    Setting(
        "retention.audit_key_file",
        TEXT,
        None,
        "a file with 32 random bytes or more, by which workers seal the audit log",
        lambda value: given.text("KeepAudit", "audit_key_file", value, like="audit.key"),
    ),
    *_keep(f"retention.workflows.{EACH}"),
    *_of(
        "limits",
        Limits,
        WHOLE,
        {
            "runs_active_max": "runs that move at once in one worker",
            "runs_cached_max": "suspended runs in memory",
            "steps_running_max": "steps that run at once in one worker",
            "threads_max": "threads for sync steps",
            "processes_max": "processes for steps with `process=True`; without it, one for each processor",
            "claim_batch_max": "runs that one claim takes",
            "commit_batch_max": "changes in one transaction",
            "payload_inline_bytes_max": "bytes of a value in the journal row; larger values become blobs",
            "payload_bytes_max": "bytes of one value",
            "history_events_max": "events of one tree",
            "history_events_advised_max": "events of one tree; beyond it a fresh journal is advised",
            "inbox_messages_max": "messages that wait for one tree",
            "streams_max": "streams of one run",
            "stream_items_max": "items that a run emits",
            "stream_bytes_max": "bytes of the items that a run emits",
            "transaction_seconds_max": "how long the transaction of a step may be open",
            "deletes_per_second_max": "runs that retention deletes in a second",
            "turns_per_event_max": "turns of a run's loop between two events",
            "attempts_max": "take-overs without progress before a run is quarantined",
            "stalls_max": "workers whose event loop a run may block before it is quarantined",
        },
    ),
    Setting(
        "log.level",
        TEXT,
        "info",
        '"debug", "info", "warning" or "error"',
        _choice("level", "debug", "info", "warning", "error"),
    ),
    Setting(
        "log.format",
        TEXT,
        "text",
        '"text", or "json" for one object on each line',
        _choice("format", "text", "json"),
    ),
    Setting(
        "metrics.port",
        WHOLE,
        None,
        "the port where `outlive worker` serves `/metrics` and `/health/...`; 0 takes a free port; without it, none",
        lambda value: given.whole("metrics", "port", value, least=0, most=65_535),
    ),
    Setting("metrics.host", TEXT, "127.0.0.1", "the address of `metrics.port`", _text("host", "127.0.0.1")),
    Setting(
        "server.host", TEXT, "127.0.0.1", "the address that `outlive serve` listens on", _text("host", "127.0.0.1")
    ),
    Setting(
        "server.port",
        WHOLE,
        7717,
        "the port of `outlive serve`; 0 takes a free port",
        lambda value: given.whole("server", "port", value, least=0, most=65_535),
    ),
    Setting(
        "server.allowed_hosts",
        TEXTS,
        (),
        "host names that the server answers for, besides those of its own machine",
        lambda value: given.texts("server", "allowed_hosts", value, like="outlive.example.com"),
    ),
    *_server_limits(
        WHOLE,
        {
            "body_bytes_max": (4 * 1024 * 1024, "bytes of the body of a request"),
            "open_body_bytes_max": (
                16 * 1024,
                "bytes of a body that needs no key: for a link, for a webhook without a token",
            ),
            "bodies_bytes_max": (64 * 1024 * 1024, "bytes of the bodies of all requests under way together"),
            "open_bodies_bytes_max": (8 * 1024 * 1024, "bytes of the bodies of all unknown senders together"),
            "followers_max": (2_000, "requests that follow events, or wait, at once; a tenth of them for admins"),
            "searches_waiting_max": (
                1_000,
                "searches for runs that wait; a key or person gets half of the places",
            ),
            "lists_max": (20, "different lists of runs that one key or person may follow at once"),
            "connections_max": (
                4_000,
                "connections at once; beyond it, a connection without a request under way is closed",
            ),
        },
    ),
    *_server_limits(
        SECONDS,
        {
            "body_seconds": (30.0, "how long the body of a request may take"),
            "read_seconds": (30.0, "how long a client may leave an answer unread"),
            "keep_alive_seconds": (30.0, "how long a connection stays open between two requests"),
            "check_seconds": (20.0, "how long the check of a document may take"),
            "search_seconds": (20.0, "how long a search for runs may take, with its wait for earlier searches"),
            "wait_seconds_max": (60.0, "how long a request may wait for a result or an answer"),
            "check_again_seconds": (
                5.0,
                "how often the key of a request that follows events or waits is checked again",
            ),
        },
    ),
    Setting(
        "server.requests_per_second",
        NUMBER,
        None,
        "requests that one key or person may send in the long run; without it, no limit",
        lambda value: TokenBucket(value).rate,
    ),
    Setting(
        "auth.mode",
        TEXT,
        "loopback",
        'who may ask: "loopback", programs of the same machine, without a key; "keys", callers with an API key',
        _choice("mode", "loopback", "keys"),
    ),
    Setting(
        "auth.header",
        TEXT,
        None,
        "a header in which a proxy names the person; without it, none",
        _text("header", "x-forwarded-user"),
    ),
    Setting(
        "auth.proxies",
        TEXTS,
        (),
        "addresses or networks of proxies whose `auth.header` and `X-Forwarded-For` the server believes",
        _networks,
    ),
    Setting(
        "auth.header_scope",
        TEXT,
        "viewer",
        'the scope of a person in `auth.header`: "viewer", "operator" or "admin"',
        _choice("header_scope", "viewer", "operator", "admin"),
    ),
    Setting(
        "tracing.enabled",
        FLAG,
        False,
        "whether `outlive worker` and `outlive serve` trace with OpenTelemetry",
        _flag("tracing"),
    ),
)
BY_NAME = {setting.name: setting for setting in SETTINGS}
