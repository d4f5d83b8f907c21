"""The dashboard is quick, and stays so with a million runs.

The processor time of the page's main thread is measured, and not the time on the wall: other tests may be running.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import CDPSession, Page, Route, expect

from tests.e2e import run_shop
from tests.e2e.site import Site

RUNS = 1_000_000
FIRST = datetime(2026, 1, 1, tzinfo=UTC)
SCROLLED = 6_000
"""Rows: more than the list holds at once."""
PIXELS = 6_000

pytestmark = pytest.mark.browser


def busy_seconds(session: CDPSession) -> float:
    """Processor time that the main thread of the page has used."""
    found = session.send("Performance.getMetrics")["metrics"]
    return float(next(each["value"] for each in found if each["name"] == "TaskDuration"))


def a_run(number: int) -> dict[str, Any]:
    """A run, as the API gives it."""
    at = (FIRST - timedelta(seconds=number)).isoformat()
    return {
        "id": f"run-{number}",
        "workflow": "order",
        "version": 1,
        "status": "succeeded",
        "waits": [],
        "created_at": at,
        "updated_at": at,
        "finished_at": at,
        "tags": {"tenant": "acme"},
        "reason": "",
        "error": None,
    }


def answer(route: Route) -> None:
    """A page of a million runs."""
    query = parse_qs(urlsplit(route.request.url).query)
    first, limit = int(query.get("after", ["0"])[0]), int(query["limit"][0])
    last = min(first + limit, RUNS)
    page = {"items": [a_run(number) for number in range(first, last)], "next": str(last) if last < RUNS else None}
    route.fulfill(status=200, content_type="application/json", body=json.dumps(page))


def test_a_million_runs_scroll_without_a_stall(site: Site, page: Page) -> None:
    """Only rows that are seen are drawn, only pages around them are held, and a step of the scroll bar is cheap."""
    page.route("**/api/v1/runs?*", answer)
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    page.goto(f"{site.url}#/runs")
    expect(page.get_by_role("link", name="run-0", exact=True)).to_be_visible()
    before = busy_seconds(session)

    seen = page.evaluate(
        """async ([rows, pixels]) => {
            const box = document.querySelector('.scroll');
            let steps = 0;
            while (box.scrollTop < rows * 34) {
                steps += 1;
                const end = box.scrollHeight - box.clientHeight;
                box.scrollTop += pixels;
                await new Promise(requestAnimationFrame);
                // The next page is under way: a person would wait for it too.
                if (box.scrollTop >= end) await new Promise((done) => setTimeout(done, 20));
            }
            return {rows: box.querySelectorAll('tbody tr').length, steps};
        }""",
        [SCROLLED, PIXELS],
    )
    busy = busy_seconds(session) - before

    assert seen["rows"] < 120
    assert busy / seen["steps"] < 0.1, f"{busy / seen['steps'] * 1000:.1f} ms for a step"
    # Pages that were let go are fetched again.
    page.evaluate("() => { document.querySelector('.scroll').scrollTop = 300 * 34; }")
    expect(page.get_by_role("link", name="run-305", exact=True)).to_be_visible()


def test_a_run_is_asked_for_while_its_view_is_loaded(site: Site, page: Page, show: Callable[[str], Page]) -> None:
    """All that the view imports, and two pages of the history, before the module of the view is there."""
    site.do(site.engine.start(run_shop.page_long, 2, id="long"))
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    page.route("**/views/run.js", hold)
    with (
        page.expect_request("**/views/run/scale.js"),
        page.expect_request("**/runs/long"),
        page.expect_request("**/history?after=-1&*"),
        page.expect_request("**/history?after=999&*"),
    ):
        show("/runs/long")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(urlsplit(request.url).path.rpartition("/")[2]))
    held[0].continue_()

    expect(page.get_by_text("Waits for the signal end")).to_be_visible()
    assert not {"history", "long"} & {*asked}


@pytest.mark.parametrize("route", ["/", "/runs", "/schedules"])
def test_a_view_is_there_soon(site: Site, page: Page, route: str, show: Callable[[str], Page]) -> None:
    """Few requests, and little work: less than the 600 ms in which it is to be usable."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    show(route)
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .panel").first).to_be_visible()

    assert busy_seconds(session) < 0.6
    requests = page.evaluate("() => performance.getEntriesByType('resource').length")
    assert requests <= 30
    # What does not change is not asked for again.
    page.reload()
    expect(page.locator("main .panel").first).to_be_visible()
    loaded = page.evaluate("() => performance.getEntriesByType('resource').map((it) => [it.name, it.transferSize])")
    assert not [name for name, size in loaded if size and name.endswith(".js")]
