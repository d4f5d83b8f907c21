"""Every view with entries, and every dialog: no rule of axe is broken, and the keyboard alone is enough."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

import outlive
from tests.e2e import shop
from tests.e2e.flow_shop import ORDER, Case, refund, ticket
from tests.e2e.reading import THEMES, check_view, problems
from tests.e2e.site import Site
from tests.flow.conftest import own_flows

__all__ = ["own_flows"]

Show = Callable[[str], Page]
pytestmark = [pytest.mark.browser, pytest.mark.timeout(400)]
VIEWS = {
    "/": "Overview",
    "/runs": "Runs",
    "/runs/patient-0": "dash_patient",
    "/runs/patient-0?tab=inbox": "dash_patient",
    "/runs/ticket-1?tab=graph": "ticket",
    "/runs/ticket-1/graph": "ticket",
    "/approvals": "Approvals",
    "/schedules": "Schedules",
    "/schedules/nightly": "Schedule nightly",
    "/queues": "Queues",
    "/queues/emails": "Queue emails",
    "/flows": "Flows",
    "/flows/order": "order",
    "/new-flow": "New flow",
    "/workflows": "Workflows",
    "/workflows/dash_order": "dash_order",
    "/batches": "Batches",
    "/batches/numbers": "Batch numbers",
    "/workers": "Workers",
    "/recovery": "Recovery",
}
DIALOGS = {
    "/runs/patient-0": ["Send signal…", "Pause…", "Fork…", "Cancel…"],
    "/runs/stuck-0": ["Resume", "Skip a step…"],
    "/runs/broken-0": ["Retry…", "Delete…"],
    "/runs/refund-0": ["Approve…", "Reject…"],
    "/runs?id_prefix=patient": ["Cancel all that fit…", "Save view"],
    "/schedules/nightly": ["Pause…", "Backfill…"],
    "/queues/emails": ["Limits…", "Pause…", "Drain…"],
    "/flows/order": ["Run…", "Disable…"],
    "/workflows/dash_order": ["Pause…", "Start…"],
}
TABBABLE = """() => [...document.querySelectorAll('a[href], button, input, select, textarea, summary, [tabindex]')]
  .filter((it) => it.tabIndex >= 0 && !it.disabled && it.checkVisibility({visibilityProperty: true}))
  .map((it) => { it.dataset.reached = 'no'; return it; }).length"""
"""Everything that Tab should reach, marked; how many there are."""
REACH = """() => {
  const it = document.activeElement;
  if (!it || it === document.body) return '';
  it.dataset.reached = 'yes';
  const {outlineStyle, boxShadow} = getComputedStyle(it.closest('.editor') ?? it);
  // The box of a node in a graph has a thick border instead.
  if (it.matches('a.node') && getComputedStyle(it.querySelector('rect')).strokeWidth === '2.5px') return '';
  return outlineStyle !== 'none' || boxShadow !== 'none' ? '' : it.outerHTML.slice(0, 160);
}"""
"""Mark what has the focus now; gives it if one does not see that."""
MISSED = "() => [...document.querySelectorAll('[data-reached=no]')].map((it) => it.outerHTML.slice(0, 160))"
DEAF = """() => [...document.querySelectorAll('*')]
  .filter((it) => Object.keys(it.l ?? {}).some((name) => /^click/i.test(name)))
  .filter((it) => !it.matches('a[href], button, input, select, textarea, summary, dialog, [role=option]'))
  .filter((it) => !it.parentElement.querySelector(':scope > .by-keys') && !it.closest('[aria-hidden=true]'))
  .map((it) => it.outerHTML.slice(0, 160))"""
"""What answers to a click (preact keeps its listeners in `l`) and not to the keyboard, here or beside it."""


async def a_busy_store(site: Site) -> None:
    """Something in every view."""
    engine = site.engine
    for number in range(3):
        await (await engine.start(shop.dash_order, number, id=f"order-{number}")).result()
    shop.Bank.is_open = False
    with pytest.raises(outlive.errors.RunFailedError):
        await (await engine.start(shop.dash_order, 0, id="broken-0")).result()
    shop.Bank.is_open = True
    await engine.start(shop.dash_patient, id="patient-0", tags={"tenant": "acme"})
    await (await engine.start(shop.dash_patient, id="stuck-0")).pause(by="ann", reason="look at it first")
    await engine.queues.set("emails", concurrency=2)
    for number in range(4):
        await engine.start(shop.dash_patient, id=f"mail-{number}", queue="emails", key=f"tenant-{number}")
    await engine.schedules.set("nightly", outlive.cron("0 3 * * *", tz="Europe/Berlin"), shop.dash_order)
    await (await engine.start_batch(shop.dash_even, range(6), id="numbers")).result()
    await engine.start(ticket, Case("a tyre"), id="ticket-1")
    await engine.flows.apply(ORDER, by="ann", reason="first")
    await engine.flows.save_draft(ORDER.replace("> 1000", "> 5000"), by="bob")
    await engine.flows.apply(ORDER.replace("name: order", "name: refunds"), by="ann")
    await engine.flows.disable("refunds", reason="the bank is closed")
    async for entry in (await engine.start(refund, "order 7", id="refund-0")).follow():
        if entry.type == "ApprovalRequested":
            return


@pytest.fixture
def busy(site: Site) -> Site:
    """A site with something in every view."""
    site.do(a_busy_store(site))
    return site


def opened(page: Page, site: Site, route: str) -> None:
    """Open a route, and wait until it is drawn."""
    page.goto("about:blank")
    page.goto(f"{site.url}#{route}")
    expect(page.locator("main h1")).to_be_visible()
    expect(page.locator("main .panel").first).to_be_visible()
    expect(page.get_by_text("Looking…")).to_have_count(0)


def test_every_view_with_entries_is_readable(busy: Site, page: Page) -> None:
    """By axe, in both themes. The lists of workflows and flows show what is live, disabled or a draft."""
    for route, title in VIEWS.items():
        opened(page, busy, route)
        expect(page.locator("main h1")).to_contain_text(title)
        check_view(page, f"view{route.replace('/', '-').replace('?tab=', '-')}".rstrip("-"))
    opened(page, busy, "/flows")
    rows = page.get_by_role("row")
    expect(rows.filter(has_text="order")).to_contain_text("draft")
    expect(rows.filter(has_text="refunds")).to_contain_text("disabled")
    expect(rows.filter(has_text="refunds")).to_contain_text("the bank is closed")
    check_view(page, "flows")
    opened(page, busy, "/workflows")
    expect(page.get_by_role("row").filter(has_text="dash_even")).to_contain_text("number")
    check_view(page, "workflows")


def test_every_dialog_is_readable_and_closes_with_escape(busy: Site, page: Page) -> None:
    """By axe, in both themes; the focus goes back to the button that opened it."""
    for route, names in DIALOGS.items():
        for name in names:
            opened(page, busy, route)
            button = page.get_by_role("button", name=name, exact=True).first
            button.focus()
            page.keyboard.press("Enter")
            expect(page.get_by_role("dialog")).to_be_visible()
            for theme in THEMES:
                page.emulate_media(color_scheme=theme)
                assert not problems(page), f"{route}, {name}, {theme}: {problems(page)}"
            page.keyboard.press("Escape")
            expect(page.get_by_role("dialog")).to_have_count(0)
            expect(button).to_be_focused()


def test_every_view_works_with_the_keyboard_alone(busy: Site, page: Page) -> None:
    """Tab reaches all that can be pressed, and shows where it is; nothing answers only to a mouse."""
    for route in VIEWS:
        opened(page, busy, route)
        # More may come while this goes on, such as the boxes of a graph.
        for _ in range(3 * page.evaluate(TABBABLE)):
            if not page.evaluate(MISSED):
                break
            page.keyboard.press("Tab")
            unseen = page.evaluate(REACH)
            assert not unseen, f"{route}: one does not see that this has the focus: {unseen}"
        assert not page.evaluate(MISSED), f"{route}: {page.evaluate(MISSED)}"
        assert not page.evaluate(DEAF), f"{route}: {page.evaluate(DEAF)}"


def test_the_runs_of_a_minute_are_reached_by_keys(busy: Site, show: Show) -> None:
    """The chart has one button; arrows go from minute to minute."""
    page = show("/")
    button = page.locator(".chart .by-keys")
    expect(button).to_be_attached()
    button.focus()
    before = button.inner_text()
    page.keyboard.press("ArrowLeft")
    expect(button).not_to_have_text(before)
    page.keyboard.press("Enter")
    page.wait_for_url("**/#/runs?since=*&until=*")
