"""The dictionary of the kernel: a name means one thing, and an act has one name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "src" / "outlive" / "_kernel"
FOLDERS = (ROOT / "src", ROOT / "conformance", ROOT / "proof")

ALLOWED = {
    "ApprovalRequest": "the stored form and the shown form",
    "Batch": "twins of two stores: the changes of one transaction",
    "Event": "the stored form and the shown form",
    "Failure": "the stored form and the shown form",
    "Outcomes": "twins of three stores: the outcomes of the changes of a transaction",
    "QueueLimits": "the stored form and the shown form",
    "RateTier": "the stored form and the shown form",
    "Run": "the stored form and the shown form",
    "Session": "twins of two stores: a connection in a transaction",
    "Wait": "the stored form and the shown form",
    "WaitingKey": "the stored form and the shown form",
}
"""Names of two types that are forms of one thing, or play one role in two stores."""

ACTS = {
    "release_all": "end_session of a worker, or release_trees of this process",
    "retire_worker": "end_session",
    "Rescuer": "DeadSessionEnder",
    "find_mail": "find_inboxes",
    "wake_for_mail": "wake_for_inbox",
    "mail_mark": "inbox_mark",
    "Inbound": "InboxMessage",
    "wanted_place": "queue_choice",
    "wanted_of": "not_declined",
    "ClaimRequests": "ClaimerRequests",
    "PlaceInLine": "PendingWrite",
    "slot_freed": "room_freed",
}
"""Second names of an act or of a thing, each with the name that it has."""

PAGE = ROOT / "docs" / "internals" / "store.md"
"""The page with the table of the nouns of a queue."""
QUEUE_NOUNS_MAX = 12
CALLED = re.compile(r"`(\w+)`, called `(\w+)`")
WORD = re.compile(r"\w+")

DELIVERS, CONSUMES = "receive_signal", "take_signal"


def test_a_name_of_a_type_means_one_thing() -> None:
    """No class and no alias of a type in the kernel has the name of another, but for forms and twins of one thing."""
    found = defaultdict[str, list[str]](list)
    for path in sorted(KERNEL.rglob("*.py")):
        for name in _types(ast.parse(path.read_text("utf-8"))):
            found[name].append(path.relative_to(KERNEL).as_posix())
    twice = {name: files for name, files in found.items() if len(files) > 1}

    assert {name: files for name, files in twice.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() - twice.keys() == set()


def test_an_act_has_one_name() -> None:
    """A second name of an act stands neither in the code nor in a statement."""
    banned = re.compile(rf"\b({'|'.join(ACTS)})\b")

    assert [f"{place}: {name}; its name is {ACTS[name]}" for place, name in _found(banned)] == []


def test_a_noun_of_a_queue_is_one_of_a_few_and_in_the_code() -> None:
    """The table of nouns has no noun twice, and the words beside a noun are in the code."""
    nouns = [noun for noun, _ in _nouns()]
    words = {word for _, words in _nouns() for word in words}

    assert len(nouns) == len(set(nouns)) <= QUEUE_NOUNS_MAX
    assert words
    assert words - {word for path in _files() for word in WORD.findall(path.read_text("utf-8"))} == set()


def test_a_value_of_a_queue_has_one_name() -> None:
    """A parameter or a field of a type of the table has the name that the table gives it."""
    called = dict(CALLED.findall(PAGE.read_text("utf-8")))
    found = [(path, name, kind) for path in _files("*.py") for name, kind in _annotated(path) if kind in called]
    others = [
        f"{path.relative_to(ROOT)}: {name}: {kind}" for path, name, kind in found if name.strip("_") != called[kind]
    ]

    assert called.keys() == {kind for _, _, kind in found}
    assert others == []


def test_a_signal_is_received_by_the_frame_and_taken_by_the_run() -> None:
    """The two acts have two names, and each name stands for one of them."""
    acts = [
        (node.name, path.name)
        for path in sorted((KERNEL / "replay").glob("*.py"))
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in (DELIVERS, CONSUMES)
    ]

    assert acts == [(CONSUMES, "ask.py"), (DELIVERS, "frame.py")]


def _types(module: ast.Module) -> Iterator[str]:
    for each in module.body:
        match each:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name[0].isupper() and not name.isupper():
                is_variable = isinstance(value, ast.Call) and ast.unparse(value.func).startswith("TypeVar")
                if not is_variable:
                    yield name


def _files(*kinds: str) -> Iterator[Path]:
    """The modules and the statements, without migrations, which are history."""
    for folder in FOLDERS:
        for kind in kinds or ("*.py", "*.sql"):
            yield from (path for path in folder.rglob(kind) if "migrations" not in path.parts)


def _found(banned: re.Pattern[str]) -> Iterator[tuple[str, str]]:
    """The names in the code that are banned, each with its file."""
    for path in _files():
        for name in banned.findall(f"{path.stem} {path.read_text('utf-8')}"):
            yield path.relative_to(ROOT).as_posix(), name


def _nouns() -> Iterator[tuple[str, list[str]]]:
    """The nouns of a queue, each with its words in the code."""
    section = PAGE.read_text("utf-8").partition("\n## Queues\n")[2].partition("\n## ")[0]
    for row in section.splitlines():
        match [cell.strip() for cell in row.split("|")[1:-1]]:
            case [noun, _, words] if "`" in words:
                yield noun, re.findall(r"`(\w+)`", words)


def _annotated(path: Path) -> Iterator[tuple[str, str]]:
    """The names with an annotation in a module, each with every type that its annotation is, or may be."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        match node:
            case ast.arg(arg=name, annotation=ast.expr() as kind):
                pass
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind):
                pass
            case _:
                continue
        for part in ast.unparse(kind).split(" | "):
            yield name, part
