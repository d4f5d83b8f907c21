"""The files of the dashboard, as the server of the API hands them out."""

from __future__ import annotations

import gzip
import hashlib
import re
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import msgspec
import pytest

from outlive.dashboard import pages
from outlive.dashboard.files import SHARED, imports_in, thin
from outlive.http import Principal
from outlive.http.app import Api
from outlive.http.operation import OPERATIONS
from outlive.http.principal import FixedKeys
from outlive.testing import TestEngine
from tests.docs.words import unknown_in
from tests.http import shop
from tests.http.caller import Caller
from tests.http.write_documents import FILTERS, filters

ROOT = Path(__file__).parents[2]
STATIC = ROOT / "src" / "outlive" / "dashboard" / "static"
SCRIPT_BYTES_MAX = 60_000
ALL_SCRIPT_BYTES_MAX = 120_000
FAR = "192.0.2.7"
AUTH = FixedKeys(
    {
        "v" * 40: Principal("ann", frozenset({"viewer"})),
        "o" * 40: Principal("bob", frozenset({"operator"}), frozenset({"api_order"})),
    }
)


@pytest.fixture
async def app() -> AsyncIterator[Api]:
    """The API of an engine, with the dashboard, for those with a key."""
    async with TestEngine(worker=False) as engine:
        yield engine.asgi(auth=AUTH)


async def test_the_page_is_for_anyone_and_is_sent_once(app: Api) -> None:
    """Without a key; a browser that has it gets 304. It names its files below a folder of their content."""
    caller = Caller(app, address=FAR)
    first = await caller.get("/", headers={"accept-encoding": "gzip"})
    again = await caller.get("/", headers={"if-none-match": first.headers["etag"]})

    assert (200, "gzip", "no-cache") == (
        first.status,
        first.headers["content-encoding"],
        first.headers["cache-control"],
    )
    assert (304, b"") == (again.status, again.body)
    text = gzip.decompress(first.body).decode()
    for path in re.findall(r'(?:src|href)="([^"]+)"', text):
        found = await caller.get(f"/{path}")
        assert (200, "public, max-age=31536000, immutable") == (found.status, found.headers["cache-control"]), path
        assert "default-src 'none'" in found.headers["content-security-policy"]
    assert "<style" not in text
    assert "<script>" not in text


def test_the_page_tells_what_each_view_imports() -> None:
    """So that the modules of a view are asked for at once; what the page loads for every view is not in it."""
    text = pages().by_path[("",)].body.decode()
    listed = msgspec.json.decode(text.partition('id="imports">')[2].partition("</script>")[0])

    first = loaded_by("app.js", *SHARED)
    assert {f"./views/{path.name}" for path in (STATIC / "views").glob("*.js")} == listed.keys()
    for view, modules in listed.items():
        assert {each.removeprefix("./") for each in modules} == loaded_by(view.removeprefix("./")) - first - {view[2:]}
    assert "./views/run/timeline.js" in listed["./views/run.js"]


async def test_only_files_that_are_there_are_public(app: Api) -> None:
    """Anything else asks for a key, whatever its path looks like, and no file is written to."""
    caller = Caller(app, address=FAR)
    version = pages().version
    for path in (f"/static/{version}/../files.py", f"/static/{version}/", "/static/app.js", "/index.html", "/runs/x"):
        assert (await caller.get(path)).status == 401, path
    assert (await caller.post("/")).status == 401


async def test_a_mount_without_a_slash_leads_to_the_one_with_it(app: Api) -> None:
    """Relative links need it; the place is relative too, because a proxy may call it otherwise."""
    answer = await Caller(app).get("/ops/outlive", root="/ops/outlive")

    assert (307, "outlive/") == (answer.status, answer.headers["location"])
    assert (await Caller(app).get("/ops/outlive/", root="/ops/outlive")).status == 200


async def test_an_engine_may_be_served_without_it() -> None:
    """Then there is nothing at the root."""
    async with TestEngine(worker=False) as engine:
        assert (await Caller(engine.asgi(dashboard=False)).get("/")).status == 404


async def test_a_caller_learns_which_operations_it_may_use(app: Api) -> None:
    """A caller learns its operations by scope, and without those for the whole store if it may see only some
    workflows."""
    ann = (await Caller(app, key="v" * 40).get("/api/v1/me")).data
    bob = (await Caller(app, key="o" * 40).get("/api/v1/me")).data

    assert ("ann", ["viewer"], None) == (ann["name"], ann["scopes"], ann["workflows"])
    assert {"runs.list", "workers.list"} <= set(ann["operations"])
    assert "runs.cancel" not in ann["operations"]
    assert ["api_order"] == bob["workflows"]
    assert "runs.cancel" in bob["operations"]
    assert "workers.list" not in bob["operations"]


def test_buttons_and_requests_name_operations_that_there_are() -> None:
    """A button whose operation was renamed is hidden from everybody; a request to an old address is not found."""
    scripts = {path.name: path.read_text("utf-8") for path in STATIC.rglob("*.js")}
    namespaces = "|".join({it.namespace for it in OPERATIONS.values()})
    named = {name for text in scripts.values() for name in re.findall(rf"'((?:{namespaces})\.[a-z_]+)'", text)}
    asked = {it for text in scripts.values() for it in re.findall(r"\bcan\('([^']*)'\)", text)}
    addresses = [
        (method, re.sub(r"\$\{[^}]*\}", "{}", path).partition("?")[0])
        for text in scripts.values()
        for method, path in re.findall(r"\b(get|post|put|del)\(\s*(?:at)?[`']((?:/[^`'$]*|\$\{[^}]*\})+)[`']", text)
    ]

    assert (len(named) > 20, len(addresses) > 20) == (True, True)
    assert [] == sorted((named | asked) - OPERATIONS.keys())
    assert [] == [it for it in addresses if not is_served(*it)]


def is_served(method: str, address: str) -> bool:
    """Whether an operation has this method and address; `{}` stands for any part."""
    parts = f"/api/v1{address}".split("/")
    return any(
        it.method == {"del": "DELETE"}.get(method, method.upper())
        and len(parts) == len(own := it.path.split("/"))
        and all(here == there or "{" in here + there for here, there in zip(parts, own, strict=True))
        for it in OPERATIONS.values()
    )


def loaded_by(*first: str) -> set[str]:
    """The modules that a browser has when these are loaded: they, what they import, and what those import."""
    found = list(first)
    for path in found:
        found += [each for each in imports_in(path, (STATIC / path).read_text("utf-8")) if each not in found]
    return set(found)


def sent_bytes(modules: Iterable[str]) -> int:
    """How large modules are as they are sent, compressed."""
    sent = {"/".join(parts[2:]): page for parts, page in pages().by_path.items()}
    return sum(len(sent[path].packed or sent[path].body) for path in modules)


@pytest.mark.parametrize("view", sorted(path.name for path in (STATIC / "views").glob("*.js")))
def test_the_script_of_a_page_is_small(view: str) -> None:
    """The shell and a view with all that it imports, compressed as they are sent: what a visitor of that view loads."""
    assert sent_bytes(loaded_by("app.js", *SHARED, f"views/{view}")) < SCRIPT_BYTES_MAX


def test_all_script_together_is_bounded() -> None:
    """A visitor of every view has loaded this much; each view is to be as small as it can be."""
    assert sent_bytes(path.relative_to(STATIC).as_posix() for path in STATIC.rglob("*.js")) < ALL_SCRIPT_BYTES_MAX


def test_a_module_is_sent_without_comments_on_the_same_lines() -> None:
    """An error in a browser names the line of the source."""
    source = "// A.\nimport 1;\n\n/**\n * B.\n */\nfunction f() {\n  /** C. */\n  return 'http://x';\n}\n"

    assert "\nimport 1;\n\n\n\n\nfunction f() {\n\nreturn 'http://x';\n}\n" == thin(source)


def test_the_types_of_expressions_are_not_sent() -> None:
    """Code behind the type in the same line is sent."""
    source = "/** @type {Row[]} */\nconst a = [];\nb = await /** @type {X} */ (c);\n/** @type {X} */ (d)?.focus();\n"

    assert "\nconst a = [];\nb = await (c);\n(d)?.focus();\n" == thin(source)


@pytest.mark.parametrize("path", sorted(STATIC.rglob("*.js")), ids=lambda path: path.relative_to(STATIC).as_posix())
def test_a_module_imports_only_what_is_there(path: Path) -> None:
    """A missing one would be found by a user; the modules in the table of views count too."""
    own = path.relative_to(STATIC).as_posix()
    source = path.read_text("utf-8")
    later = [f"views/{name}" for name in re.findall(r"module: '\./views/([\w-]+\.js)'", source)]

    for imported in [*imports_in(own, source), *later]:
        assert (STATIC / imported).is_file(), f"{own} imports {imported}"


@pytest.mark.parametrize(
    ("path", "source", "found"),
    [
        ("app.js", "import { a } from './parts/a.js';", ["parts/a.js"]),
        ("parts/a.js", "import { b } from '../b.js';\nexport { c } from './c.js';", ["b.js", "parts/c.js"]),
        ("views/a.js", "import {\n  b,\n} from '../b.js';", ["b.js"]),
        ("app.js", "const later = () => import('./views/a.js');", []),
        ("app.js", "say('import it from here');", []),
    ],
)
def test_imports_of_a_module_are_found(path: str, source: str, found: list[str]) -> None:
    """Relative to the module; modules that are loaded later are not."""
    assert found == imports_in(path, source)


def test_vendored_files_have_the_recorded_hashes() -> None:
    """The vendored files have the recorded hashes, and their licences lie beside them."""
    recorded = msgspec.json.decode((STATIC / "vendor" / "vendored.json").read_bytes())
    licences = (STATIC / "vendor" / "LICENSES.txt").read_text("utf-8")

    assert recorded["sha256"] == hashlib.sha256((STATIC / "vendor" / recorded["file"]).read_bytes()).hexdigest()
    assert all(name in licences for name in recorded["packages"])
    axe = (ROOT / "tests" / "e2e" / "axe" / "axe.min.js").read_bytes()
    assert hashlib.sha256(axe).hexdigest() == "20c09fe157a8a34a30e241aaa1fcdade657734f08ab379ecfbeb7d45cc46e878"


async def test_the_overview_has_the_figures_of_the_store() -> None:
    """Counts of what needs a person, the last hour, and queues that have runs."""
    async with TestEngine() as engine:
        await engine.start(shop.api_refund, id="refund", queue="people")
        await engine.settle()
        found = (await Caller(engine.asgi()).get("/api/v1/overview")).data

    assert ({"count": 1, "at_least": False}, 60, 1) == (found["approvals"], len(found["minutes"]), found["workers"])
    assert ["people"] == [each["name"] for each in found["queues"]]
    assert 1 == found["minutes"][-1]["open"]


ADVICE = re.compile(r"<code>outlive ([^<`$]+)")
"""A command in a page."""


def test_a_page_advises_only_commands_that_are_there() -> None:
    """So are the options in its advice."""
    advice = {said.strip(): file.name for file in STATIC.rglob("*.js") for said in ADVICE.findall(file.read_text())}

    assert len(advice) > 5
    assert {said: name for said, name in advice.items() if unknown_in(said)} == {}


def test_filters_of_runs_are_those_of_the_api() -> None:
    """The dashboard has no list of its own: a new filter of the API is in its form and in its addresses."""
    assert FILTERS.read_text("utf-8") == filters(), "run `make generate`"
    assert "name: 'queue', kind: 'text'" in filters()
