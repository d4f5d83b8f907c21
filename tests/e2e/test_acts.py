"""What a person does to runs: skip a step, ask, delete one or many; and what a promise looks like."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from outlive.engine import Engine
from tests.e2e import run_shop, shop
from tests.e2e.reading import check_view
from tests.e2e.site import Site
from tests.e2e.test_run import row, sentence

Show = Callable[[str], Page]
pytestmark = pytest.mark.browser


def test_a_step_that_cannot_work_is_skipped(site: Site, show: Show) -> None:
    """The run is paused first; then it goes on with what the person says the step has returned."""
    site.do(site.engine.start(run_shop.page_voyage, id="voyage"))
    page = show("/runs/voyage")
    expect(sentence(page)).to_contain_text("Waits for the next attempt of page_moor")
    expect(sentence(page)).to_contain_text("the last with Refused: Kiel is closed")

    page.get_by_role("button", name="Pause…").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(sentence(page)).to_contain_text("Is paused")
    row(page, "page_moor").click()
    page.get_by_role("region", name="what is chosen").get_by_role("button", name="Skip…").click()
    dialog = page.get_by_role("dialog", name="Skip a step")
    expect(dialog.get_by_label("Step")).to_have_value("page_moor")
    check_view(page, "run-skip")
    dialog.get_by_label("Result").fill('"at anchor"')
    dialog.get_by_role("button", name="Skip").click()

    expect(sentence(page)).to_contain_text("Succeeded")
    expect(row(page, "page_moor, skipped")).to_be_visible()
    expect(dialog).to_have_count(0)
    page.keyboard.press("Escape")
    expect(page.get_by_role("group", name="result")).to_contain_text("moored: at anchor")


def test_a_run_is_asked_and_answers(site: Site, show: Show) -> None:
    """The answer stays in the dialog, from which the next ask is sent."""
    site.do(site.engine.start(run_shop.page_cart, id="cart"))
    page = show("/runs/cart")
    expect(sentence(page)).to_contain_text("Waits to be asked add")

    sentence(page).get_by_role("button", name="Ask…").click()
    dialog = page.get_by_role("dialog", name="Ask the run")
    for given, answer in ((4, "4"), (6, "10")):
        dialog.get_by_label("Body").fill(str(given))
        dialog.get_by_role("button", name="Ask").click()
        expect(dialog.get_by_role("status")).to_contain_text(answer)
    check_view(page, "run-ask")
    dialog.get_by_role("button", name="Close").click()
    expect(sentence(page)).to_contain_text("Succeeded")
    expect(row(page, "ask add, answered")).to_have_count(2)


def test_a_promise_is_waited_for_until_it_is_settled(site: Site, show: Show) -> None:
    """By another program: the page says so, and has no button for it."""
    promise_id = site.do(_promised(site.engine))
    page = show("/runs/courier")

    expect(sentence(page)).to_contain_text("Waits for a promise that a program outside settles")
    expect(sentence(page).get_by_role("button")).to_have_count(0)
    expect(sentence(page)).to_contain_text(f"Its id is {promise_id}.")
    expect(row(page, "promise, waiting")).to_be_visible()
    check_view(page, "run-promise")
    site.do(site.engine.promises.resolve(promise_id, "delivered"))
    expect(sentence(page)).to_contain_text("Succeeded")
    expect(row(page, "promise, settled")).to_be_visible()


async def _promised(engine: Engine) -> str:
    async for entry in (await engine.start(run_shop.page_courier, id="courier")).follow():
        if entry.type == "StepSucceeded":
            return str(entry.data["result"])
    raise AssertionError("no step has sent the id")


def test_a_run_that_has_ended_is_deleted(site: Site, show: Show) -> None:
    """After a question; then the list is shown, without it."""
    site.do(site.do(site.engine.start(shop.dash_order, 5, id="order-5")).result())
    page = show("/runs/order-5")

    page.get_by_role("button", name="Delete…").click()
    expect(page.get_by_role("dialog")).to_contain_text("There is no way back.")
    check_view(page, "run-delete")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("There are no runs yet.")).to_be_visible()


def test_many_runs_are_deleted_after_a_look(site: Site, show: Show) -> None:
    """The dialog says how many. It is not offered with filters that deleting does not know: it would delete more."""
    for number in range(3):
        site.do(site.do(site.engine.start(shop.dash_order, number, id=f"order-{number}")).result())
    site.do(site.engine.start(shop.dash_patient, id="patient"))
    page = show("/runs?id_prefix=order-")
    expect(page.get_by_role("row")).to_have_count(4)

    page.get_by_role("button", name="Delete all that fit…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("3 runs that have ended")
    check_view(page, "runs-purge")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("status")).to_contain_text("3 deleted.")
    page = show("/runs?waiting_for=go")
    expect(page.get_by_role("row")).to_have_count(2)
    expect(page.get_by_role("button", name="Cancel all that fit…")).to_be_visible()
    expect(page.get_by_role("button", name="Delete all that fit…")).to_have_count(0)
