"""The dictionary of the kernel: a name means one thing, and an act has one name."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
KERNEL = ROOT / "src" / "outlive" / "_kernel"

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
}
"""Second names of an act or of a thing, each with the name that it has."""

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
    folders = (ROOT / "src", ROOT / "conformance", ROOT / "proof")
    files = [path for folder in folders for kind in ("*.py", "*.sql") for path in folder.rglob(kind)]
    found = [
        f"{path.relative_to(ROOT).as_posix()}: {name}; its name is {ACTS[name]}"
        for path in files
        if "migrations" not in path.parts
        for name in banned.findall(f"{path.stem} {path.read_text('utf-8')}")
    ]

    assert found == []


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
