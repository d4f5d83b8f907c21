"""Flows, machines, approvals and workflows in the dashboard."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.flow_shop import ORDER, Case, refund, ticket
from tests.e2e.reading import check_view
from tests.e2e.site import Site
from tests.flow.conftest import own_flows

__all__ = ["own_flows"]

Show = Callable[[str], Page]
LARGER = ORDER.replace("> 1000", "> 5000").replace("  notify:\n", "  # Tells the customer.\n  notify:\n")


def publish(site: Site, *documents: str) -> None:
    """Publish them one after the other."""
    for number, document in enumerate(documents, 1):
        site.do(site.engine.flows.apply(document, by="ann", reason=f"round {number}"))


def test_a_flow_is_written_published_and_rolled_back(show: Show, site: Site) -> None:
    """A mistake is shown at its line and cannot be published; the versions stand side by side."""
    publish(site, ORDER)
    page = show("/flows")
    page.get_by_role("link", name="order").click()
    expect(page.locator(".node")).to_have_count(6)
    page.get_by_role("navigation", name="parts of the flow").get_by_text("Draft").click()
    editor = page.get_by_role("textbox", name="document")
    editor.fill(LARGER.replace("after: [charge, stock]", "after: [charje, stock]"))
    expect(page.locator(".problems")).to_contain_text("did you mean charge?")
    expect(page.get_by_role("button", name="Publish…")).to_be_disabled()
    check_view(page, "flow-draft-mistake")

    editor.fill(LARGER)
    expect(page.locator(".problems")).to_contain_text("It can be published.")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_text("The draft of order is kept.")).to_be_visible()
    page.get_by_role("button", name="Publish…").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.locator(".line.come").first).to_contain_text("5000")
    check_view(page, "flow-publish")
    dialog.get_by_label("why").fill("small ones go through")
    dialog.get_by_role("button", name="Publish").click()
    expect(page.locator(".facts")).to_contain_text("small ones go through")

    page.get_by_role("navigation", name="parts of the flow").get_by_text("Versions").click()
    expect(page.locator(".sides .line.gone").first).to_contain_text("1000")
    check_view(page, "flow-versions")
    page.get_by_role("button", name="Roll back…").click()
    page.get_by_role("dialog").get_by_role("button", name="Roll back").click()
    expect(page.locator(".facts")).to_contain_text("rolled back to revision 1")
    assert 3 == site.do(site.engine.flows.info("order")).revision


@pytest.mark.browser
def test_a_step_leads_to_its_line_and_a_line_to_its_step(show: Show, site: Site) -> None:
    """By a URL that can be sent; arrow keys go from box to box."""
    publish(site, ORDER)
    page = show("/flows/order?tab=document&step=charge")
    expect(page.locator(".line.chosen").first).to_contain_text("charge:")
    expect(page.locator(".line.chosen")).to_have_count(4)
    expect(page.locator(".node.selected")).to_contain_text("charge")
    check_view(page, "flow")
    page.locator(".node", has_text="reserve").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".line.chosen").first).to_contain_text("stock:")
    page.get_by_label(f"line {ORDER.splitlines().index('  notify:') + 1}").click()
    expect(page.locator(".node.selected")).to_contain_text("notify")
    assert "step=notify" in page.url


@pytest.mark.browser
def test_a_flow_is_run_by_a_form_and_disabled(show: Show, site: Site) -> None:
    """The form is that of its input; what does not fit is said in it."""
    publish(site, ORDER)
    page = show("/flows/order")
    page.get_by_role("button", name="Run…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("customer").fill("Ann")
    dialog.get_by_label("cents").fill("4500")
    dialog.get_by_label("express").check()
    dialog.get_by_label("id of the run").fill("order-7")
    check_view(page, "flow-run")
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Run order-7 is started.")).to_be_visible()
    assert page.url.endswith("#/runs/order-7")

    page = show("/flows/order")
    page.get_by_role("button", name="Disable…").click()
    page.get_by_role("dialog").get_by_label("why").fill("the bank is closed")
    page.get_by_role("dialog").get_by_role("button", name="Disable").click()
    expect(page.locator(".why")).to_contain_text("the bank is closed")
    expect(page.get_by_role("button", name="Run…")).to_have_count(0)
    check_view(page, "flow-disabled")
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("button", name="Run…")).to_be_visible()
    page = show("/workflows/order")
    expect(page.get_by_role("link", name="See its document and its graph.")).to_be_visible()


@pytest.mark.browser
def test_a_new_flow_begins_with_a_draft(show: Show) -> None:
    """Its document says its name."""
    page = show("/flows")
    expect(page.get_by_text("The library has no flow.")).to_be_visible()
    check_view(page, "flows-empty")
    page.get_by_role("link", name="New flow").click()
    expect(page.locator(".problems")).to_contain_text("It can be published.")
    check_view(page, "flow-new")
    page.get_by_role("textbox", name="document").press("End")
    page.keyboard.type("# ")
    page.get_by_role("button", name="Save draft").click()
    expect(page.get_by_role("heading", name="hello")).to_be_visible()
    assert page.url.endswith("#/flows/hello?tab=draft")


@pytest.mark.browser
def test_the_editor_knows_the_steps_of_remote_workers(show: Show, site: Site) -> None:
    """They are listed below the document and among the workers, what a worker says of them is text, and a document is
    checked with it while it is written."""
    takes = {"type": "object", "properties": {"url": {"type": "string"}, "<b>": {}}, "additionalProperties": False}
    site.do(site.engine.tasks.claim("scanners", {"scan": {"input": takes}}, worker="scanner-1"))
    page = show("/new-flow")
    expect(page.get_by_role("cell", name="scanners/scan")).to_be_visible()
    expect(page.get_by_role("cell", name="url, <b>")).to_be_visible()
    text = "name: scanned\nsteps:\n  one: { use: scanners/scan, with: { uri: a } }\n"
    page.get_by_role("textbox", name="document").fill(text)
    expect(page.locator(".problems")).to_contain_text("did you mean url?")
    check_view(page, "flow-new-steps")
    show("/workers")
    expect(page.get_by_role("cell", name="scanners/scan")).to_be_visible()
    check_view(page, "workers-steps")


def test_an_approval_is_given_with_a_form(show: Show, site: Site) -> None:
    """The fields are those of its schema; the run has what was filled in."""
    run = site.do(site.engine.start(refund, "order-15", id="refund-1"))
    page = show("/approvals")
    page.get_by_role("link", name="Refund 5.00 EUR for order-15?").click()
    panel = page.get_by_role("region", name="decision")
    panel.get_by_label("cents").fill("450")
    panel.get_by_label("reason").select_option(label="late")
    panel.get_by_label("comment").fill("half of it was fine")
    check_view(page, "approvals")
    panel.get_by_role("button", name="Approve").click()
    expect(page.get_by_text("Approved: Refund 5.00 EUR for order-15?")).to_be_visible()
    expect(page.get_by_text("Nothing waits for a decision.")).to_be_visible()
    assert "True 450 half of it was fine" == site.do(run.result())


@pytest.mark.browser
def test_an_approval_is_rejected_with_a_reason(show: Show, site: Site) -> None:
    """The inbox is that of one person, by its URL."""
    run = site.do(site.engine.start(refund, "order-16", id="refund-2"))
    site.do(site.engine.start(refund, "order-17", 700, id="refund-3"))
    page = show("/approvals?assignee=eve")
    expect(page.get_by_text("Nothing waits for a decision of eve.")).to_be_visible()
    page = show("/approvals?assignee=finance")
    expect(page.get_by_role("link", name="order-16")).to_be_visible()
    check_view(page, "approvals-list")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    panel = page.get_by_role("region", name="decision")
    panel.get_by_label("comment").fill("too late")
    panel.get_by_role("button", name="Reject").click()
    expect(panel).to_contain_text("order-17")
    assert "False 0 too late" == site.do(run.result())


@pytest.mark.browser
def test_a_workflow_is_started_by_a_form(show: Show, site: Site) -> None:
    """Made of the types of its arguments."""
    page = show("/workflows")
    page.get_by_role("link", name="ticket").click()
    expect(page.locator(".node")).to_have_count(7)
    page.get_by_role("button", name="Start…").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("subject").fill("It does not start")
    dialog.get_by_label("severity").select_option(label="high")
    dialog.get_by_label("id of the run").fill("ticket-1")
    check_view(page, "workflow-start")
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_text("Run ticket-1 is started.")).to_be_visible()
    assert "ticket" == site.do(site.engine.get("ticket-1").info()).workflow


@pytest.mark.browser
def test_the_states_of_a_machine_are_a_graph(show: Show, site: Site) -> None:
    """With what is selected in the URL."""
    page = show("/workflows/ticket")
    review = page.locator(".node", has_text="REVIEW")
    expect(review).to_be_visible()
    check_view(page, "workflow")
    review.click()
    expect(page.locator(".panel header", has_text="States")).to_contain_text("goes to WORK, CLOSED")
    assert "state=REVIEW" in page.url


@pytest.mark.browser
def test_a_viewer_sees_no_action(tmp_path: Path, page: Page) -> None:
    """Neither on a flow, nor in the inbox, nor on a workflow."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth="keys") as site:
        publish(site, ORDER, LARGER)
        site.do(site.engine.start(refund, "order-15", id="refund-1"))
        secret = site.do(site.engine.keys.create("vera", scope="viewer")).secret
        page.goto(site.url)
        page.get_by_label("API key").fill(secret)
        page.get_by_label("API key").press("Enter")
        for route, shown in (
            ("/flows", "order"),
            ("/flows/order", "Graph"),
            ("/flows/order?tab=versions", "Side by side"),
            ("/workflows/refund", "Takes"),
        ):
            page.goto(f"{site.url}#{route}")
            expect(page.locator("main")).to_contain_text(shown)
            words = page.locator("main button").all_inner_texts() + page.locator("main a.button").all_inner_texts()
            assert not {"New flow", "Run…", "Disable…", "Roll back…", "Start…", "Pause…", "Resume"} & set(words)
        expect(page.get_by_role("navigation", name="parts of the flow").get_by_text("Draft")).to_have_count(0)
        page.goto(f"{site.url}#/approvals")
        page.get_by_role("link", name="Refund 5.00").click()
        expect(page.get_by_text("Your key may look, and not decide.")).to_be_visible()
        expect(page.get_by_role("button", name="Approve")).to_have_count(0)


@pytest.mark.browser
@pytest.mark.parametrize(
    "route",
    [
        "/flows",
        "/flows/order",
        "/flows/order?tab=versions",
        "/flows/order?tab=draft",
        "/workflows/ticket",
        "/approvals",
    ],
)
def test_a_view_of_flows_fits_the_screen_of_a_phone(show: Show, site: Site, route: str) -> None:
    """No view of flows, workflows or approvals is wider than the screen of a phone."""
    publish(site, ORDER, LARGER)
    site.do(site.engine.start(refund, "order-15", id="refund-1"))
    page = show(route)
    page.set_viewport_size({"width": 360, "height": 720})
    expect(page.locator("main .panel").first).to_be_visible()

    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    check_view(page, f"phone{route.replace('/', '-').replace('?tab=', '-')}")


def test_the_state_of_a_run_moves_in_its_graph(show: Show, site: Site) -> None:
    """Without a reload: where it waits, where it went, and how often."""
    run = site.do(site.engine.start(ticket, Case("It does not start"), id="ticket-2"))
    page = show("/runs/ticket-2/graph")
    expect(page.locator(".node.waiting")).to_contain_text("TRIAGE")
    expect(page.locator(".node.succeeded")).to_contain_text("NEW")
    site.do(run.signal("severity", "high"))
    expect(page.locator(".node.waiting")).to_contain_text("REVIEW")
    site.do(run.signal("verdict", False))
    expect(page.get_by_role("link", name=re.compile("^WORK "))).to_contain_text("2 times")
    check_view(page, "run-graph-machine")
    page = show("/runs/ticket-2?tab=graph")
    expect(page.locator(".node.waiting")).to_contain_text("REVIEW")
    site.do(run.signal("verdict", True))
    expect(page.locator(".node.exit.succeeded")).to_contain_text("CLOSED")


@pytest.mark.browser
def test_a_run_of_a_flow_has_its_document_beside_its_graph(show: Show, site: Site) -> None:
    """A run of a flow shows the document of the revision that it was started with beside its graph."""
    publish(site, ORDER)
    site.do(site.engine.flows.start("order", {"customer": "Ann"}, id="order-8"))
    publish(site, LARGER)
    page = show("/runs/order-8/graph?step=approve")
    expect(page.locator(".node.waiting")).to_contain_text("approve")
    expect(page.locator(".line.chosen").nth(2)).to_contain_text("> 1000")
    check_view(page, "run-graph-flow")
    site.do(site.engine.get("order-8").approve("large-order", by="ann"))
    expect(page.locator(".node.succeeded")).to_have_count(6)
