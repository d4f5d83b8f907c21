"""The overview and the list of runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import outlive
from tests.e2e import hour, shop
from tests.e2e.reading import check_view
from tests.e2e.site import Site

Show = Callable[[str], Page]


@pytest.fixture(autouse=True)
def open_bank() -> Iterator[None]:
    """The bank takes cards again after each test."""
    yield
    shop.Bank.is_open = True


async def some_runs(site: Site) -> None:
    """Runs that have succeeded and failed, that wait, and that ask."""
    engine = site.engine
    for number in range(5):
        await (await engine.start(shop.dash_order, number, id=f"order-{number}", tags={"tenant": "acme"})).result()
    shop.Bank.is_open = False
    for number in range(2):
        failing = await engine.start(shop.dash_order, number, id=f"broken-{number}", tags={"tenant": "umbrella"})
        with pytest.raises(outlive.errors.RunFailedError):
            await failing.result()
    await engine.start(shop.dash_patient, id="patient-0")
    async for entry in (await engine.start(shop.dash_refund, id="refund-0")).follow():
        if entry.type == "ApprovalRequested":
            return


def test_a_run_appears_while_one_looks_and_is_found_by_status(site: Site, show: Show) -> None:
    """The list is live; a filter is in the URL and stays over a reload. [FE-O3]"""
    page = show("/runs")
    expect(page.get_by_text("There are no runs yet.")).to_be_visible()
    site.do(some_runs(site))
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="patient-0")).to_contain_text("waiting")
    expect(rows).to_have_count(10)

    page.get_by_role("button", name="failed", exact=True).click()
    expect(rows).to_have_count(3)
    expect(rows.filter(has_text="broken-1")).to_contain_text("Declined: no 1 today")
    page.reload()
    expect(rows).to_have_count(3)
    assert page.url.endswith("#/runs?status=failed")


@pytest.mark.browser
def test_the_overview_leads_to_what_needs_a_person(site: Site, show: Show) -> None:
    """Each figure is a link to the list behind it."""
    site.do(some_runs(site))
    page = show("/")

    expect(page.get_by_role("link", name="approvals due 1")).to_be_visible()
    expect(page.get_by_role("link", name="workers 1")).to_be_visible()
    expect(page.get_by_role("img", name="5 succeeded, 2 failed")).to_be_visible()
    page.get_by_role("link", name="failed 2").click()
    expect(page.get_by_role("row")).to_have_count(3)


@pytest.mark.browser
def test_an_hour_of_a_shop_is_readable(tmp_path: Path, page: Page) -> None:
    """The overview and the list with the runs of an hour, in all states; a bar leads to the runs of its minute."""
    url = f"sqlite:{tmp_path / 'hour.db'}"
    hour.fill(url)
    with Site(url) as site:
        page.goto(f"{site.url}#/")
        chart = page.get_by_role("img", name="Runs of the last hour")
        expect(chart).to_be_visible()
        expect(page.get_by_role("link", name="approvals due 2")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="emails")).to_contain_text("2")
        check_view(page, "overview")
        page.goto(f"{site.url}#/runs")
        expect(page.get_by_role("row").filter(has_text="refund-2")).to_be_visible()
        check_view(page, "runs")
        page.goto(f"{site.url}#/schedules")
        expect(page.get_by_role("img", name="The next fires")).to_be_visible()
        check_view(page, "schedules")
        page.goto(f"{site.url}#/queues/emails")
        expect(page.get_by_role("link", name="in line")).to_be_visible()
        check_view(page, "queue")
        page.go_back()
        page.goto(f"{site.url}#/")
        chart.click(position={"x": 400, "y": 60})
        page.wait_for_url("**/#/runs?since=*&until=*")


@pytest.mark.browser
def test_runs_are_found_by_id_tag_and_error(site: Site, show: Show) -> None:
    """By one field; what is searched for is shown, and can be taken away."""
    site.do(some_runs(site))
    page = show("/runs")
    rows, field = page.get_by_role("row"), page.get_by_role("searchbox")
    expect(rows).to_have_count(10)

    for text, count in (("order-3", 2), ("tenant=umbrella", 3), ("error:Declined", 3)):
        field.fill(text)
        field.press("Enter")
        expect(rows).to_have_count(count)
        page.get_by_role("button", name="Clear").click()
        expect(rows).to_have_count(10)
    page.get_by_role("button", name="Filters").click()
    page.get_by_label("workflow", exact=True).fill("dash_patient")
    page.get_by_label("workflow", exact=True).press("Enter")
    expect(rows).to_have_count(2)
    check_view(page, "runs-filters")


@pytest.mark.browser
def test_filters_are_saved_as_a_view(site: Site, show: Show) -> None:
    """In this browser, by a name."""
    page = show("/runs?status=failed")
    page.get_by_role("button", name="Save view").click()
    page.get_by_label("name", exact=True).fill("broken")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="failed", exact=True).click()

    page.get_by_role("link", name="broken").click()
    expect(page.get_by_role("button", name="failed", exact=True)).to_have_attribute("aria-pressed", "true")


@pytest.mark.browser
def test_many_runs_are_retried_after_a_look(site: Site, show: Show) -> None:
    """The dialog lists the runs; then each goes on, and the list shows it."""
    site.do(some_runs(site))
    shop.Bank.is_open = True
    page = show("/runs?status=failed")
    page.get_by_role("button", name="Retry all that fit").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("2 runs fit.")
    check_view(page, "runs-bulk")
    dialog.get_by_role("button", name="Retry").click()

    expect(page.get_by_role("status")).to_contain_text("2 of 2 retried.")
    expect(page.get_by_text("No run fits.")).to_be_visible()


@pytest.mark.browser
def test_rows_are_chosen_and_copied_by_keys(site: Site, show: Show, page: Page) -> None:
    """j and k go through the rows, x chooses one, Enter opens it; the table is copied as CSV."""
    site.do(some_runs(site))
    show("/runs?id_prefix=order-&order=created_at")
    expect(page.get_by_role("row")).to_have_count(6)

    for key in "jjkx":
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="Cancel 1")).to_be_visible()
    expect(page.get_by_role("checkbox", name="choose order-0")).to_be_checked()
    page.get_by_role("button", name="Copy CSV").click()
    expect(page.get_by_role("status")).to_contain_text("5 rows copied")
    lines = str(page.evaluate("() => navigator.clipboard.readText()")).splitlines()
    assert "id,status,workflow,started,took,tags,what" == lines[0]
    assert lines[1].startswith("order-0,succeeded,dash_order,")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/runs/order-0")
