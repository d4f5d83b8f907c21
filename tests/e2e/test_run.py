"""The page of a run: what it says, what it draws, and what can be done there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, Page, expect

from outlive.http import Principal
from outlive.http.principal import FixedKeys
from tests.e2e import run_shop
from tests.e2e.reading import check_view
from tests.e2e.site import Site

Show = Callable[[str], Page]
ROOT = Path(__file__).parents[2]
SLOW_SECONDS = 30.0
"""For what waits for a lease to run out and for processes to start, on a machine that may be busy."""


@pytest.fixture(autouse=True)
def _weather() -> Iterator[None]:
    yield
    run_shop.Weather.is_good = True


def sentence(page: Page) -> Locator:
    """What the run waits for."""
    return page.get_by_role("region", name="what it waits for")


def row(page: Page, name: str) -> Locator:
    """A row of the timeline."""
    return page.get_by_role("region", name="timeline").get_by_role("link", name=name)


def test_a_run_is_watched_from_its_start_to_its_end(site: Site, show: Show) -> None:
    """Live; its one button is what would move the run, and the form is that of the approval."""
    site.do(site.engine.start(run_shop.page_order, 15, id="order-15"))
    page = show("/runs/order-15")

    expect(sentence(page)).to_contain_text("Waits for the signal paid")
    expect(row(page, "page_reserve, succeeded")).to_be_visible()
    expect(row(page, "page_invoice, succeeded")).to_be_visible()
    site.do(site.engine.signal("order-15", "paid", {"evt": 7}))
    expect(sentence(page)).to_contain_text("Waits for the approval refund from ann")
    expect(row(page, "signal paid, received")).to_be_visible()
    row(page, "signal paid").click()
    expect(page.get_by_role("region", name="what is chosen")).to_contain_text("evt")
    check_view(page, "run")
    sentence(page).get_by_role("button", name="Approve").click()
    page.get_by_label("amount").fill("5")
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(sentence(page)).to_contain_text("Succeeded")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="result")).to_contain_text("15: 5")


@pytest.mark.browser
def test_a_step_that_hangs_has_a_name_while_it_does_and_after_a_cancel(site: Site, show: Show) -> None:
    """In the sentence and in the timeline, with its attempt, its last failure, its heartbeat and its arguments."""
    run = site.do(site.engine.start(run_shop.page_hang, "o-77", id="hang-1"))
    page = show("/runs/hang-1")

    expect(sentence(page)).to_contain_text('in step page_call_bank(account="o-77", cents=1999), attempt 2 of 5, for')
    expect(sentence(page)).to_contain_text("Bank: no answer")
    row(page, "page_call_bank, under way").click()
    chosen = page.get_by_role("region", name="what is chosen")
    expect(chosen).to_contain_text("2 of 5")
    expect(chosen).to_contain_text("last heartbeat")
    expect(page.get_by_role("group", name="arguments")).to_contain_text("o-77")
    check_view(page, "run-hang")
    site.do(run.cancel(reason="ann gave up"))
    expect(sentence(page)).to_contain_text("ann gave up; it was in step page_call_bank, attempt 2 of 5, for")


@pytest.mark.browser
def test_escape_closes_the_menu_before_the_selection(site: Site, show: Show) -> None:
    """Escape closes an open menu first and then the selection of the page."""
    site.do(site.engine.start(run_shop.page_order, 16, id="order-16"))
    page = show("/runs/order-16")
    row(page, "page_reserve, succeeded").click()
    expect(page).to_have_url(re.compile("at="))
    more = page.get_by_role("button", name="More")
    more.click()

    page.keyboard.press("Escape")
    expect(more).to_have_attribute("aria-expanded", "false")
    expect(page).to_have_url(re.compile("at="))
    page.keyboard.press("Escape")

    expect(page).not_to_have_url(re.compile("at="))


@pytest.mark.browser
def test_the_gap_of_a_crash_says_who_was_lost_and_who_took_over(tmp_path: Path, page: Page) -> None:
    """A worker is killed with SIGKILL in the middle of a step, and another one goes on."""
    url = f"sqlite:{tmp_path / 'site.db'}"
    with Site(url, worker=False) as site, Worker(url, "a1") as first:
        site.do(site.engine.start("page_survivor", [str(tmp_path)], id="survivor"))
        page.goto(f"{site.url}#/runs/survivor")
        expect(row(page, "page_reserve, succeeded")).to_be_visible(timeout=SLOW_SECONDS * 1000)
        expect(sentence(page)).to_contain_text("a1", timeout=SLOW_SECONDS * 1000)
        while not (tmp_path / "begun").exists():
            page.wait_for_timeout(20)
        first.send_signal(signal.SIGKILL)
        with Worker(url, "b2"):
            gap = page.get_by_role("link", name="a1 was lost")
            expect(gap).to_be_visible(timeout=SLOW_SECONDS * 1000)
            expect(gap).to_contain_text("b2 took over", timeout=SLOW_SECONDS * 1000)
            expect(row(page, "ran again after the crash")).to_be_visible()
            gap.click()
            expect(page.get_by_role("region", name="what is chosen")).to_contain_text("Ran again")
            check_view(page, "run-crash")


class Worker:
    """A worker in a process of its own."""

    def __init__(self, url: str, name: str) -> None:
        options = ["--store", url, "--name", name, "--lease-seconds", "1", "--log-level", "error"]
        self._command = [sys.executable, "-m", "outlive.cli", "worker", "tests.e2e.run_shop", *options]

    def __enter__(self) -> subprocess.Popen[bytes]:
        self._process = subprocess.Popen(
            self._command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL
        )
        return self._process

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.browser
def test_a_run_is_cancelled_and_retried(site: Site, show: Show) -> None:
    """A run that a person cancels and retries shows both at once, and its history has the reason."""
    site.do(site.engine.start(run_shop.page_long, 2, id="long"))
    page = show("/runs/long")
    expect(sentence(page)).to_contain_text("signal end")

    page.get_by_role("button", name="Cancel…").click()
    page.get_by_label("Reason").fill("wrong order")
    page.get_by_role("button", name="Cancel the run").click()
    expect(sentence(page)).to_contain_text("Was cancelled")
    expect(page.get_by_role("region", name="events")).to_contain_text("wrong order")
    sentence(page).get_by_role("button", name="Retry").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(sentence(page)).to_contain_text("signal end")
    sentence(page).get_by_role("button", name="Send signal").click()
    check_view(page, "run-signal")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(sentence(page)).to_contain_text("Succeeded")


@pytest.mark.browser
def test_a_failed_run_shows_the_users_frames_and_goes_on_at_what_failed(site: Site, show: Show) -> None:
    """The step that failed is a click away; its attempts and errors are beside the timeline."""
    run_shop.Weather.is_good = False
    site.do(site.engine.start(run_shop.page_shipment, 16, id="ship"))
    page = show("/runs/ship")

    expect(sentence(page)).to_contain_text("Refused: order 16 cannot be shipped")
    sentence(page).get_by_role("link", name="page_ship").click()
    chosen = page.get_by_role("region", name="what is chosen")
    expect(chosen).to_contain_text("e2e/run_shop.py:")
    expect(chosen).to_contain_text("back-off")
    check_view(page, "run-failed")
    run_shop.Weather.is_good = True
    sentence(page).get_by_role("button", name="Retry").click()
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(sentence(page)).to_contain_text("Succeeded")


@pytest.mark.browser
def test_a_run_is_forked_with_another_result_of_a_step(site: Site, show: Show) -> None:
    """The form has what it was; what depends on it is done again in a new run."""
    run = site.do(site.engine.start(run_shop.page_shipment, 17, id="ship"))
    site.do(run.result())
    page = show(f"/runs/ship?at={quote('step:page_reserve')}")

    page.get_by_role("button", name="Fork from here").click()
    page.get_by_role("radio", name="with another result of a step").check()
    expect(page.get_by_role("textbox", name="Result")).to_have_value('{\n  "reserved": 17\n}')
    check_view(page, "run-fork")
    page.get_by_role("textbox", name="Result").fill('{"reserved": 99}')
    page.get_by_role("dialog").get_by_role("button", name="Fork").click()

    expect(sentence(page)).to_contain_text("Succeeded")
    expect(page.get_by_role("group", name="result")).to_contain_text("99 shipped")
    assert "/runs/ship" not in page.url


@pytest.mark.browser
def test_a_run_is_paused_and_resumed(site: Site, show: Show) -> None:
    """The sentence says who paused it, and the button lets it go on."""
    site.do(site.engine.start(run_shop.page_long, 2, id="long"))
    page = show("/runs/long")

    page.get_by_role("button", name="Pause…").click()
    page.get_by_label("Reason").fill("for the night")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(sentence(page)).to_contain_text("paused by local: for the night")
    sentence(page).get_by_role("button", name="Resume").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(sentence(page)).to_contain_text("signal end")


@pytest.mark.browser
def test_a_long_run_opens_and_stays_live(site: Site, show: Show) -> None:
    """10,000 events: only the rows that are seen are drawn, and the next event shows. A fresh journal is advised."""
    site.do(site.engine.start(run_shop.page_long, 10_000, id="long"))
    page = show("/runs/long")

    expect(page.get_by_text("10,002", exact=True)).to_be_visible(timeout=SLOW_SECONDS * 1000)
    assert page.get_by_role("region", name="timeline").get_by_role("listitem").count() < 100
    expect(sentence(page)).to_contain_text("Waits for the signal end")
    expect(sentence(page)).to_contain_text(
        "Its journal has more than 10,000 events, which every replay reads: let it go"
    )
    site.do(site.engine.signal("long", "end"))
    expect(sentence(page)).to_contain_text("Succeeded")
    expect(page.get_by_role("region", name="events")).to_contain_text("the run succeeded")


@pytest.mark.browser
def test_a_viewer_sees_the_run_and_nothing_to_do(tmp_path: Path, page: Page) -> None:
    """Not even the button of the sentence."""
    auth = FixedKeys({"v" * 40: Principal("ann", frozenset({"viewer"}))})
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth=auth) as site:
        site.do(site.engine.start(run_shop.page_order, 15, id="order-15"))
        page.goto(f"{site.url}#/runs/order-15")
        page.get_by_label("API key").fill("v" * 40)
        page.get_by_role("button", name="Sign in").click()

        expect(sentence(page)).to_contain_text("Waits for the signal paid")
        row(page, "page_reserve").click()
        for name in ("Signal", "Send", "Cancel", "Fork", "Pause", "Approve", "Retry", "Delete"):
            expect(page.get_by_role("button", name=name)).to_have_count(0)


@pytest.mark.browser
def test_the_page_works_with_the_keyboard_alone_and_each_state_has_a_url(site: Site, show: Show) -> None:
    """j and k go through the timeline, figures through the tabs; a reload shows the same."""
    site.do(site.engine.start(run_shop.page_order, 15, id="order-15"))
    page = show("/runs/order-15")
    expect(sentence(page)).to_contain_text("signal paid")
    expect(row(page, "signal paid")).to_be_visible()

    page.keyboard.press("j")
    expect(page.get_by_role("region", name="what is chosen")).to_contain_text("page_reserve")
    page.keyboard.press("j")
    page.keyboard.press("k")
    page.keyboard.press("z")
    page.keyboard.press("c")
    page.keyboard.press("3")
    expect(page.get_by_role("log", name="stream words")).to_contain_text("all is well")
    page.reload()
    expect(page.get_by_role("region", name="what is chosen")).to_contain_text("page_reserve")
    expect(page.get_by_role("log", name="stream words")).to_contain_text("all is well")
    expect(page.get_by_role("button", name="Critical path")).to_have_attribute("aria-pressed", "true")
    check_view(page, "run-output")
    page.keyboard.press("4")
    expect(page.get_by_role("region", name="tree of runs")).to_contain_text("page_invoice")
    check_view(page, "run-tree")
    page.keyboard.press("a")
    expect(page.get_by_role("dialog", name="Send a signal")).to_be_visible()


@pytest.mark.browser
def test_two_runs_are_compared_and_a_phone_is_enough(site: Site, show: Show) -> None:
    """A comparison of two runs begins with what ended differently, and nothing in it is wider than the screen of a
    phone."""
    run_shop.Weather.is_good = False
    site.do(site.engine.start(run_shop.page_shipment, 1, id="bad"))
    page = show("/runs/bad")
    expect(sentence(page)).to_contain_text("Refused")
    run_shop.Weather.is_good = True
    site.do(site.do(site.engine.start(run_shop.page_shipment, 2, id="good")).result())

    page.keyboard.press("5")
    choice = page.get_by_role("combobox", name="with")
    expect(choice).to_contain_text("good, succeeded")
    choice.select_option("good")
    table = page.get_by_role("region", name="differences")
    expect(table.get_by_role("row").nth(1)).to_contain_text("failed here, succeeded there")
    check_view(page, "run-compare")
    page.set_viewport_size({"width": 390, "height": 844})
    check_view(page, "run-phone")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 390
