"""A browser for the dashboard: Debian's chromium, driven by playwright.

Where CI is set chromium must be there; elsewhere its tests are skipped without it. `OUTLIVE_CHROMIUM` names another.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.e2e.site import Site

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SECONDS_MAX = 10.0
"""How long a page may take to show what a test expects of it; this machine may be busy."""
expect.set_options(timeout=SECONDS_MAX * 1000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    wanted = os.environ.get("OUTLIVE_CHROMIUM")
    program = next((found for name in ([wanted] if wanted else NAMES) if (found := shutil.which(name))), None)
    if program is None:
        said = "no chromium to start; on Debian: apt-get install chromium, or set OUTLIVE_CHROMIUM to the program"
        if os.environ.get("CI"):
            pytest.fail(said)
        pytest.skip(said)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A window of its own, with nothing kept from other tests."""
    context = browser.new_context(
        viewport={"width": 1280, "height": 820}, permissions=["clipboard-read", "clipboard-write"]
    )
    context.set_default_timeout(SECONDS_MAX * 1000)
    yield context
    context.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A page; whatever it writes to the console as an error fails the test."""
    page = context.new_page()
    errors: list[str] = []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    # A browser writes each answer from 400 on to the console; the page shows it to the user.
    wrong = [each for each in errors if "Failed to load resource" not in each]
    assert not wrong, wrong


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """An engine with a worker, and its dashboard."""
    with Site(f"sqlite:{tmp_path / 'site.db'}") as site:
        yield site


@pytest.fixture
def show(site: Site, page: Page) -> Callable[[str], Page]:
    """Opens a route of the dashboard: `show("/runs")`."""

    def open_route(route: str) -> Page:
        page.goto(f"{site.url}#{route}")
        return page

    return open_route
