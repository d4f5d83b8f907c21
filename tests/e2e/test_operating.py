"""What operators look at: schedules, queues, batches, workers, recovery and the audit log."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import outlive
from tests.e2e import shop
from tests.e2e.reading import check_view
from tests.e2e.site import Site

Show = Callable[[str], Page]


def test_a_schedule_is_paused_triggered_and_resumed(site: Site, show: Show) -> None:
    """With a note; its next fires are on a time line, and the run that it starts is shown."""
    schedules = site.engine.schedules
    site.do(schedules.set("nightly", outlive.cron("0 3 * * *", tz="Europe/Berlin"), shop.dash_order))
    site.do(schedules.set("digest", outlive.every(minutes=15), shop.dash_order))
    page = show("/schedules")
    expect(page.get_by_role("img", name="The next fires")).to_be_visible()
    page.get_by_role("link", name="digest").click()
    expect(page.get_by_role("heading", name="Schedule digest")).to_be_visible()

    page.get_by_role("button", name="Pause").click()
    page.get_by_label("why").fill("quarter end")
    page.get_by_role("dialog").get_by_role("button", name="Pause").click()
    expect(page.get_by_text("quarter end")).to_be_visible()
    check_view(page, "schedule")
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Trigger now").click()
    page.wait_for_url("**/#/runs/*")
    page.go_back()
    expect(page.get_by_role("row").filter(has_text="succeeded")).to_be_visible()


@pytest.mark.browser
def test_ticks_of_a_past_range_are_started(site: Site, show: Show) -> None:
    """Backfilling says how many."""
    site.do(site.engine.schedules.set("daily", outlive.cron("0 3 * * *"), shop.dash_order))
    page = show("/schedules/daily")
    page.get_by_role("button", name="Backfill").click()
    page.get_by_label("from").fill("2026-01-01T00:00")
    page.get_by_label("to", exact=True).fill("2026-01-04T00:00")
    page.get_by_role("button", name="Start the runs").click()

    expect(page.get_by_role("status")).to_contain_text("3 ticks are started.")
    expect(page.get_by_role("row")).to_have_count(4)


@pytest.mark.browser
def test_a_queue_is_limited_and_drained(site: Site, show: Show) -> None:
    """Limits count at once; a drained queue says when its last run has ended."""
    site.do(site.engine.queues.set("emails", concurrency=2))
    for number in range(4):
        site.do(site.engine.start(shop.dash_patient, id=f"mail-{number}", queue="emails", key=f"tenant-{number}"))
    page = show("/queues")
    expect(page.get_by_role("row").filter(has_text="emails")).to_contain_text("2 of 2")
    check_view(page, "queues")
    page.get_by_role("link", name="emails").click()
    expect(page.get_by_role("link", name="in line 2")).to_be_visible()
    keys = page.get_by_role("region", name="keys").get_by_role("row")
    expect(keys.filter(has_text="tenant-2")).to_contain_text(re.compile(r"tenant-21.*0$"))
    expect(keys.filter(has_text="tenant-0")).to_contain_text(re.compile(r"tenant-00.*1$"))

    page.get_by_role("button", name="Limits…").click()
    page.get_by_label("slots, in all workers").fill("3")
    page.get_by_label("how often runs may begin").fill("500/60\noften")
    page.get_by_label("turns of keys").fill("tenant-2=3")
    page.get_by_role("button", name="Change").click()
    expect(page.get_by_text("“often” is not a rate")).to_be_visible()
    page.get_by_label("how often runs may begin").fill("500/60\n100:200")
    page.get_by_role("button", name="Change").click()
    limits = page.get_by_role("region", name="Limits")
    for shown in ("500 in 1 min", "100 a second, 200 at once", "turns of tenant-2", "3 changed"):
        expect(limits).to_contain_text(shown)
    expect(page.get_by_role("link", name="in line 1")).to_be_visible()
    page.get_by_role("button", name="Drain").click()
    page.get_by_role("dialog").get_by_role("button", name="Drain").click()
    expect(page.get_by_text("3 runs hold a slot and go on; no other gets one.")).to_be_visible()
    for number in range(4):
        site.do(site.engine.signal(f"mail-{number}", "go"))
    expect(page.get_by_text("It is drained: no run holds a slot.")).to_be_visible()


@pytest.mark.browser
def test_a_batch_shows_its_progress_and_is_retried(site: Site, show: Show) -> None:
    """By outcome; what failed becomes another batch."""
    batch = site.do(site.engine.start_batch(shop.dash_even, range(40), id="numbers"))
    page = show("/batches")
    expect(page.get_by_role("row").filter(has_text="numbers")).to_contain_text("40 of 40")
    check_view(page, "batches")
    page.get_by_role("link", name="numbers").click()
    expect(page.get_by_role("row").filter(has_text="odd: 1").first).to_be_visible()
    check_view(page, "batch")
    page.get_by_role("button", name="succeeded").click()
    expect(page.get_by_role("row")).to_have_count(21)

    page.get_by_role("button", name="Retry what failed").click()
    expect(page.get_by_role("heading", name="Batch")).not_to_contain_text(batch.id)
    expect(page.get_by_text("20 of 20 rows have ended.")).to_be_visible()


@pytest.mark.browser
def test_parked_runs_are_resumed_after_a_look(site: Site, show: Show) -> None:
    """One by one, or all of them."""
    for number in range(3):
        run = site.do(site.engine.start(shop.dash_patient, id=f"stuck-{number}"))
        site.do(run.pause(by="ann", reason="look at it first"))
    page = show("/runs?status=parked")
    expect(page.get_by_role("row")).to_have_count(4)
    page = show("/recovery")
    expect(page.get_by_role("row")).to_have_count(4)
    check_view(page, "recovery")

    page.get_by_role("row").filter(has_text="stuck-1").get_by_role("button", name="Resume").click()
    expect(page.get_by_role("row")).to_have_count(3)
    page.get_by_role("button", name="Resume all parked").click()
    page.get_by_role("dialog").get_by_role("button", name="Resume", exact=True).click()
    expect(page.get_by_role("status")).to_contain_text("resumed")


@pytest.mark.browser
def test_the_audit_log_is_searched_and_checked(tmp_path: Path, page: Page) -> None:
    """An administrator sees who did what; a viewer does not see the log, nor any action."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth="keys") as site:
        keys = {scope: site.do(site.engine.keys.create(scope, scope=scope)).secret for scope in ("admin", "viewer")}
        site.do(site.engine.start(shop.dash_patient, id="patient-0"))
        page.goto(f"{site.url}#/runs")
        page.get_by_label("API key").fill(keys["admin"])
        page.keyboard.press("Enter")
        page.get_by_role("checkbox", name="choose patient-0").check()
        page.get_by_role("button", name="Cancel 1").click()
        page.get_by_label("reason").fill("not needed")
        page.get_by_role("button", name="Cancel", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("1 of 1 asked to stop.")
        page.get_by_role("button", name="More").click()
        page.get_by_role("link", name="Audit").click()
        expect(page.get_by_role("row").filter(has_text="patient-0")).to_contain_text("not needed")
        page.get_by_role("button", name="Check the log").click()
        expect(page.get_by_text("The log is whole:")).to_be_visible()
        check_view(page, "audit")

        page.get_by_role("button", name="Sign out").click()
        page.get_by_label("API key").fill(keys["viewer"])
        page.keyboard.press("Enter")
        page.goto(f"{site.url}#/queues")
        expect(page.get_by_role("heading", name="Queues")).to_be_visible()
        page.get_by_role("button", name="More").click()
        expect(page.get_by_role("link", name="Batches")).to_be_visible()
        expect(page.get_by_role("link", name="Audit")).to_have_count(0)
        page.goto(f"{site.url}#/runs?status=cancelled")
        expect(page.get_by_role("row")).to_have_count(2)
        expect(page.get_by_role("button", name="Retry")).to_have_count(0)
        expect(page.get_by_role("checkbox")).to_have_count(0)
