"""The reference: a page for each namespace, made of signatures and docstrings.

A heading for each verb, how it is called, what it takes, returns and raises. `make generate` writes the pages; nothing
of them is written by hand but what stands here: in which order the names of `outlive` come, and which guide says when
and why a name is used.
"""

from __future__ import annotations

import ast
import inspect
import posixpath
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import outlive
from outlive._kernel.model import given
from outlive._kernel.values import run as run_values
from tests.docs import public, source, words
from tests.docs.source import Said

SIGNATURE = "python signature"
"""The language of a block of code that is a signature: it is made of code that compiles, and is not a program."""
WRITTEN = "`make generate` writes this page from the code."
INDEX = "reference.md"

SECTIONS = {
    "Running": ("Engine", "connect"),
    "Defining": (
        *("workflow", "step", "run_step", "remote_step", "Machine", "Queue", "Retry"),
        *("cron", "every", "tick", "resource", "use"),
    ),
    "Inside a workflow": (
        *("start", "get", "signal", "ask", "cancel", "asks", "promise", "wait_condition"),
        *("wait_for_signal", "wait_for_approval", "sleep_until", "map", "saga", "now", "random", "uuid4"),
        *("emit", "publish", "set_tags", "patched", "continue_as_new", "current_run"),
    ),
    "Inside a step": ("current_step", "current_engine", "get_logger"),
    "The package": ("__version__",),
}
"""The names of `outlive`, as they are met. `Engine` has a page of its own."""

GUIDES = {
    "outlive.step": "steps",
    "outlive.run_step": "steps",
    "outlive.remote_step": "remote-steps",
    "outlive.workflow": "getting-started",
    "outlive.Machine": "machines",
    "outlive.Queue": "queues",
    "outlive.Retry": "steps#retries",
    "outlive.cron": "schedules",
    "outlive.every": "schedules",
    "outlive.resource": "steps#resources",
    "outlive.use": "steps#resources",
    "outlive.connect": "http-api#from-python",
    "outlive.start": "waiting#children",
    "outlive.get": "messages",
    "outlive.signal": "messages",
    "outlive.asks": "messages#asks",
    "outlive.ask": "messages#asks",
    "outlive.wait_condition": "messages#beside-other-work",
    "events.send": "events-and-webhooks",
    "outlive.promise": "messages#promises",
    "outlive.wait_for_signal": "messages#signals",
    "outlive.wait_for_approval": "approvals",
    "outlive.map": "batches#map",
    "outlive.saga": "sagas",
    "outlive.emit": "streams",
    "outlive.publish": "generations",
    "outlive.set_tags": "finding",
    "outlive.patched": "changing-code#marks",
    "outlive.continue_as_new": "generations",
    "outlive.get_logger": "logging",
    "limits.Breaker": "limits",
    "limits.RateLimit": "limits",
    "limits.Debounce": "queues",
    "limits.Throttle": "queues",
    "limits.Limits": "operating",
    "limits.Tolerance": "batches#when-an-item-of-a-map-fails",
    "middleware.Tracing": "tracing",
    "types.RunHandle": "getting-started",
    "types.Batch": "batches",
    "types.Recovery": "deploying#when-a-worker-dies",
    "types.Tx": "step-kinds#your-own-tables",
    "types.SyncTx": "step-kinds#your-own-tables",
    "engine": "getting-started",
    "engine.list": "finding",
    "engine.count": "finding",
    "engine.start_batch": "batches",
    "engine.ask": "messages#asks",
    "engine.signal": "messages#signals",
    "engine.retry": "bringing-back",
    "engine.fork": "bringing-back",
    "engine.pause": "bringing-back",
    "engine.resume": "bringing-back",
    "engine.change": "bringing-back#change-an-open-run",
    "engine.skip_step": "bringing-back#runs-that-do-not-move",
    "engine.list_stuck": "bringing-back#runs-that-do-not-move",
    "engine.purge": "retention",
    "engine.asgi": "http-api",
    "engine.configured": "configuration",
    "engine.approvals": "approvals",
    "engine.promises": "messages#promises",
    "engine.asks": "messages#asks",
    "engine.inbox": "messages#messages-that-a-run-has-not-read",
    "engine.dead_letters": "messages#messages-that-were-set-aside",
    "engine.batches": "batches",
    "engine.bulk": "bringing-back",
    "engine.queues": "queues",
    "engine.quotas": "security#namespaces",
    "engine.schedules": "schedules",
    "engine.flows": "flows-in-production",
    "engine.events": "events-and-webhooks",
    "engine.tasks": "remote-steps",
    "engine.workers": "operating",
    "engine.workflows": "finding",
    "engine.keys": "security",
    "engine.audit": "security",
    "checkpoints": "checkpoints",
    "codecs": "values#compressing",
    "errors": "errors",
    "flow": "flows",
    "http": "http-api",
    "machine": "machines",
    "metrics": "metrics",
    "middleware": "middleware",
    "retention": "retention",
    "testing": "testing",
}
"""The guide that says when and why a name is used."""

HEAD = """Every public name, with how it is called, what it takes, returns and raises. Names that no list here
has, names with a leading underscore, and modules that have one in their path, are not public.

`outlive.connect` gives an object with the verbs of an engine; [its guide](guides/http-api.md#from-python) says how they
differ.
`engine.sync` has them without `await`: see [sync code](guides/sync.md)."""
PAGES = """## Other pages

| Page | Has |
|---|---|
| [Commands](reference/commands.md) | what you type: `outlive ...` |
| [Words](reference/words.md) | what each act is called in Python, over HTTP and on the command line |
| [Operations](reference/operations.md) | the HTTP API, and [openapi.json](openapi.json) for programs |
| [Expressions](reference/expressions.md) | what stands in `${{ ... }}` of a flow |
| [History files](reference/history-format.md) | the format of exported histories |
| [Errors](guides/errors.md) | when each error comes, and what to do |"""
CONSTANTS = {
    "outlive.__version__": "The version of the package, as text.",
    "outlive.tick": (
        "Stands for the time of a tick in the `args` of a schedule: the instant in UTC; `tick.local` is the same with "
        "the offset of the schedule's time zone, and `tick.date` its day there."
    ),
    "types.REMOVED": "`outlive.publish(stage=outlive.types.REMOVED)` takes a field out of what is published.",
    "http.Authenticate": (
        "A function that is given an `http.Asking`, what a request says of its sender, and returns an "
        "`http.Principal`, or None if it cannot tell. It raises nothing but `StoreUnavailableError`."
    ),
    "metrics.CONTENT_TYPE": "The value of the header `Content-Type` for the text of `metrics.exposition`.",
}
"""What is said of names that cannot have a docstring."""


@dataclass
class Heading:
    """A name with all that is said of it."""

    name: str
    level: int
    text: str

    @property
    def anchor(self) -> str:
        """What a link has behind the `#`, as the sites that show pages make it."""
        return re.sub(r"[^\w\- ]", "", self.name.lower()).replace(" ", "-")

    def shown(self) -> str:
        """The part of the page."""
        return f"{'#' * self.level} `{self.name}`\n\n{self.text}"


@dataclass
class Page:
    """A page of the reference."""

    path: str
    """Below `docs`."""
    title: str
    text: str = ""
    parts: list[Heading | str] = field(default_factory=list)
    """Names, and what stands between them."""

    def shown(self) -> str:
        """The file."""
        parts = [part.shown() if isinstance(part, Heading) else part for part in self.parts]
        return "\n\n".join([f"# {self.title}", self.text, *parts, WRITTEN]) + "\n"


@dataclass(frozen=True)
class Own:
    """What a text is about: a name, and the page that it is on."""

    name: str
    page: Page
    parameters: frozenset[str] = frozenset()

    @property
    def space(self) -> str:
        """What stands before the name: names of the same space may be said without it."""
        return self.name.rpartition(".")[0]


class Reference:
    """All pages."""

    def __init__(self) -> None:
        self._links: dict[str, tuple[str, str]] = {}
        self._ambiguous = {"Any"}
        self._explained: set[type] = set()

    @cached_property
    def pages(self) -> list[Page]:
        """A page for each namespace; made twice, as links lead to pages that come later."""
        for page in self._make():
            self._links[page.title] = page.path, ""
            for part in page.parts:
                if isinstance(part, Heading):
                    self._note(part, page)
        self._links |= {"Span": (INDEX, "time-spans"), "Status": (INDEX, "statuses")}
        self._links |= {f"E{name[1:]}": place for name, place in self._links.items() if name.startswith("engine.")}
        return self._make()

    @cached_property
    def classes(self) -> set[type]:
        """Every class that a page explains."""
        named = {it for _, it in public.public_names() if isinstance(it, type)}
        return {outlive.Engine, *named, *self._explained, *self._own_spaces().values()} if self.pages else set()

    def index(self) -> Page:
        """The page that leads to all of them."""
        names, engine, *others = self.pages
        spaces = [page for page in others if page.title.startswith("engine.")]
        by_name = {part.name: part for part in names.parts if isinstance(part, Heading)}
        sections = {
            title: [by_name[f"outlive.{name}"] for name in listed if name != "Engine"]
            for title, listed in SECTIONS.items()
        }
        return Page(
            INDEX,
            "Reference",
            HEAD,
            [
                _table("## Names of `outlive`", "For", [_row(title, names, it) for title, it in sections.items()]),
                _table("## Verbs of an engine", "Of", [_row_of(page) for page in (engine, *spaces)]),
                _table("## Namespaces", "Namespace", [_row_of(page) for page in others if page not in spaces]),
                PAGES,
                f"## Time spans\n\n{source.said_below(given, 'Span')}",
                f"## Statuses\n\n{source.said_below(run_values, 'Status')}",
            ],
        )

    def words(self) -> Page:
        """The page that says what each act is called in Python, over HTTP and on the command line."""
        assert self.pages  # They have the names that this page links to.
        return Page(words.PATH, "Words of Python, HTTP and the command line", words.HEAD, [*words.parts(self._links)])

    def _note(self, heading: Heading, page: Page) -> None:
        place = page.path, heading.anchor
        last = heading.name.rpartition(".")[2]
        for name in {heading.name, *([last] if last[:1].isupper() else [])}:
            if self._links.setdefault(name, place) != place:
                self._ambiguous.add(name)

    # -- Pages -----------------------------------------------------------------------------------------------

    def _make(self) -> list[Page]:
        self._explained = set()
        return [
            self._names_page(),
            self._engine_page(),
            *(self._space_page(name, kind) for name, kind in self._own_spaces().items()),
            *(self._namespace_page(name) for name in public.spaces()),
        ]

    def _names_page(self) -> Page:
        page = Page("reference/outlive.md", "outlive", "What `import outlive` gives, as programs meet it.")
        for section, names in SECTIONS.items():
            page.parts.append(f"## {section}")
            for name in names:
                if name == "Engine":
                    page.parts.append("[`outlive.Engine`](engine.md) has a page of its own.")
                else:
                    page.parts += self._things(Own(f"outlive.{name}", page), getattr(outlive, name), level=3)
        return page

    def _engine_page(self) -> Page:
        page = Page("reference/engine.md", "outlive.Engine")
        own = Own("engine", page)
        page.text = self._class(own, outlive.Engine, source.constructor_shown(outlive.Engine, "outlive.Engine"))
        rows, spaces = ["| Namespace | Has |", "|---|---|"], public.spaces_in(outlive.Engine)
        for name in spaces:
            own_page = f"engine/{name}.md" if name in self._own_spaces() else f"{name}.md"
            rows.append(f"| [`engine.{name}`]({own_page}) | {_in_cell(self._space_text(name, page))} |")
        members = [it for it in self._members(own, outlive.Engine, level=2) if it.name.split(".")[1] not in spaces]
        page.parts = ["## Namespaces", "\n".join(rows), *members, *self._values(outlive.Engine, page)]
        return page

    def _own_spaces(self) -> dict[str, type]:
        """The namespaces of an engine whose class is in no namespace of `outlive`."""
        return {name: kind for name, kind in public.spaces_in(outlive.Engine).items() if not public.is_public(kind)}

    def _space_text(self, name: str, page: Page) -> str:
        said = source.said_of(inspect.getdoc(getattr(outlive.Engine, name)) or "")
        return self._prose(said.prose, Own(f"engine.{name}.", page))

    def _space_page(self, name: str, kind: type) -> Page:
        page = Page(f"reference/engine/{name}.md", f"engine.{name}")
        page.text = _paragraphs(self._space_text(name, page), _guide(page.title, page))
        page.parts += self._members(Own(page.title, page), kind, level=2)
        page.parts += self._values(kind, page)
        return page

    def _namespace_page(self, name: str) -> Page:
        module = getattr(outlive, name)
        page = Page(f"reference/{name}.md", f"outlive.{name}")
        said = source.said_of(module.__doc__ or "")
        page.text = _paragraphs(self._prose(said.prose, Own(f"{name}.", page)), _guide(name, page))
        for each in public.names_in(module):
            page.parts += self._things(Own(f"{name}.{each}", page), getattr(module, each), level=2)
        return page

    def _values(self, kind: type, page: Page) -> list[Heading | str]:
        """What the verbs of a namespace give that has no page yet."""
        found = [*self._values_of(kind)]
        self._explained |= {*found}
        headings = [part for it in found for part in self._things(Own(it.__name__, page), it, level=3)]
        return ["## Values", *headings] if headings else []

    def _values_of(self, kind: type) -> Iterator[type]:
        inner = [] if kind is outlive.Engine else public.spaces_in(kind).values()
        left = [kind, *inner]
        seen = {*left, *self._explained}
        while left:
            for value in public.given_by(left.pop(0)):
                if value not in seen and not public.is_public(value):
                    seen.add(value)
                    left.append(value)
                    yield value

    # -- Things ----------------------------------------------------------------------------------------------

    def _things(self, own: Own, it: Any, *, level: int) -> Iterator[Heading]:
        """The heading of a name, and for a class those of its methods."""
        called = own.name if own.name.startswith("outlive.") else f"outlive.{own.name}"
        if isinstance(it, type):
            made = source.constructor_shown(it, called) if public.is_made(own.name) else ""
            yield Heading(own.name, level, self._class(own, it, made))
            methods = [name for name, member in public.members_of(it) if not isinstance(member, property)]
            members = self._members(Own(it.__name__, own.page), it, level=level + 1)
            yield from (heading for heading in members if heading.name.rpartition(".")[2] in methods)
        elif inspect.isfunction(it):
            yield Heading(own.name, level, self._function(own, it, called))
        else:
            yield Heading(own.name, level, self._prose(CONSTANTS[own.name], own))

    def _class(self, own: Own, it: type, made: str) -> str:
        said = source.said_of(vars(it).get("__doc__") or "")
        assert said.prose, f"{own.name} does not say what it is"
        bases = ", ".join(self._linked(base.__name__, own) for base in it.__bases__)
        return _paragraphs(
            f"Derives from {bases}." if issubclass(it, BaseException) else "",
            _block(made) if made else "",
            self._prose(said.prose, own),
            *self._sections(said, own),
            self._fields(own, it),
            _guide(own.name, own.page),
        )

    def _fields(self, own: Own, it: type) -> str:
        rows = ["| Field | Type | Means |", "|---|---|---|"]
        for each in public.fields_of(it):
            if own.name == "engine" and (not each.text or each.name in public.spaces_in(outlive.Engine)):
                continue
            code = self._type(each.type, own)
            rows.append(f"| `{each.name}` | {code} | {_in_cell(self._text(each.text, own))} |")
        return "\n".join(rows) if len(rows) > 2 else ""

    def _type(self, shown: str, own: Own) -> str:
        """A type in a table: a link if it has one name that is explained."""
        if not shown:
            return ""
        code = f"`{_in_cell(shown)}`"
        links = [link for name in source.names_in([shown]) if (link := self._linked(name, own)).startswith("[")]
        return code if len(links) != 1 else re.sub("`.*?`", lambda _: code, links[0])

    def _members(self, own: Own, it: type, *, level: int) -> Iterator[Heading]:
        """The methods of a class, and of the namespaces that it has."""
        for each, member in public.members_of(it):
            inner = Own(f"{own.name}.{each}", own.page)
            if not isinstance(member, property):
                yield Heading(inner.name, level, self._function(inner, member, inner.name, is_method=True))
            elif (space := public.space_of(member)) is not None:
                yield from self._members(inner, space, level=level)

    def _function(self, own: Own, it: Any, called: str, *, is_method: bool = False) -> str:
        said = source.said_of(inspect.getdoc(it) or "")
        assert said.prose, f"{own.name} does not say what it does"
        own = Own(own.name, own.page, frozenset(inspect.signature(it).parameters))
        returned = "" if source.is_decorator(it) else source.returned_by(it)
        return _paragraphs(
            _block(source.call_shown(it, called, is_method=is_method)),
            self._prose(said.prose, own),
            *self._sections(said, own, returned),
            _guide(own.name, own.page),
        )

    def _sections(self, said: Said, own: Own, returned: str = "") -> Iterator[str]:
        if said.arguments:
            yield "\n".join(f"- {_codes(name)}: {self._text(text, own)}" for name, text in said.arguments)
        links = [self._linked(name, own) for name in source.names_in([returned]) if name in self._links]
        if said.returns:
            yield f"**Returns** {self._text(said.returns, own)}"
        elif links:
            yield f"**Returns** {', '.join(links)}."
        if said.raises:
            yield "**Raises**\n\n" + "\n".join(self._raised(said.raises, own))

    def _raised(self, raises: list[tuple[list[str], str]], own: Own) -> Iterator[str]:
        for names, text in raises:
            for name in names:
                said = text or _meaning_of(name)
                shown, code = public.reason_of(name)
                reason = f"{self._linked(shown, own)}{code and f' (`{code}`)'}"
                yield f"- {reason}" + (f": {self._text(said, own)}" if said else "")

    # -- Text ------------------------------------------------------------------------------------------------

    def _prose(self, text: str, own: Own) -> str:
        """Prose of a docstring as Markdown: what is indented is code."""
        parts: list[str] = []
        for paragraph in re.split(r"\n\s*\n", text):
            is_code = paragraph.startswith("    ")
            assert is_code or not _is_python(paragraph), f"{own.name}: an example is not indented: {paragraph}"
            shown = textwrap.dedent(paragraph) if is_code else self._text(paragraph, own)
            if is_code and parts and parts[-1].endswith("\n```"):
                parts[-1] = f"{parts[-1].removesuffix('```')}\n{shown}\n```"
            else:
                parts.append(f"```python no-run\n{shown}\n```" if is_code else shown)
        return _paragraphs(*parts)

    def _text(self, text: str, own: Own) -> str:
        """A paragraph with links from names to where they are explained."""
        pieces = re.split(r"(`[^`]+`)", text)
        return "".join(self._linked(each[1:-1], own) if each[:1] == "`" else _plain(each) for each in pieces)

    def _linked(self, name: str, own: Own) -> str:
        code = f"`{name}`"
        near = f"{own.space}.{name}"
        whole = near if name not in own.parameters and near in self._links else name
        if whole in self._ambiguous or whole not in self._links or own.name in (whole, f"outlive.{whole}"):
            return code
        path, anchor = self._links[whole]
        target = "" if path == own.page.path else _relative(own.page.path, path)
        return f"[{code}]({target}{anchor and f'#{anchor}'})" if target or anchor else code


def _row_of(page: Page) -> str:
    """A page with the names that it is about, without members of classes and what is explained behind them."""
    tops = [part for part in page.parts if isinstance(part, Heading) and part.level == 2 and part.name.count(".") < 3]
    return _row(f"[`{page.title}`]({page.path})", page, tops)


def _row(title: str, page: Page, headings: list[Heading]) -> str:
    links = [f"[`{it.name.rpartition('.')[2]}`]({page.path}#{it.anchor})" for it in headings]
    return f"| {title} | {', '.join(links)} |"


def _table(heading: str, first: str, rows: list[str]) -> str:
    return "\n".join([heading, "", f"| {first} | Names |", "|---|---|", *rows])


def _is_python(text: str) -> bool:
    """Whether a paragraph of several words is a program and no sentence."""
    try:
        return " " in text.strip() and bool(ast.parse(text))
    except SyntaxError:
        return False


def _meaning_of(name: str) -> str:
    """What an error of ours says of itself, as the end of a sentence."""
    it = public.errors().get(name)
    assert it is not None, f"no public error is called {name}"
    said = source.said_of(it.__doc__ or "").promise
    return said[:1].lower() + said[1:] if it.__module__.startswith("outlive") else ""


def _guide(name: str, page: Page) -> str:
    if (guide := GUIDES.get(name)) is None:
        return ""
    name_of_page, _, heading = guide.partition("#")
    address = f"{'../' * page.path.count('/')}guides/{name_of_page}.md{heading and '#'}{heading}"
    return f"Guide: [{(heading or name_of_page).replace('-', ' ')}]({address})."


def _paragraphs(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)


def _block(code: str) -> str:
    return f"```{SIGNATURE}\n{code}\n```"


def _codes(names: str) -> str:
    return ", ".join(f"`{name}`" for name in names.split(", "))


def _plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("*", "\\*")


def _in_cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def _relative(page: str, target: str) -> str:
    """Where a page is for another one."""
    return posixpath.relpath(target, posixpath.dirname(page))
