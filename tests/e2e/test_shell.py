"""The shell of the dashboard: navigation, keys, themes, signing in."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.e2e import shop
from tests.e2e.reading import check_view
from tests.e2e.site import Site

Show = Callable[[str], Page]


def test_a_view_opens_by_its_url_and_by_the_navigation(show: Show) -> None:
    """A view opens by its URL, after a reload, and by the navigation."""
    page = show("/workers")

    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    expect(page.get_by_role("cell", name="live", exact=True)).to_be_visible()
    check_view(page, "workers")
    page.reload()
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    page.get_by_role("link", name="Overview").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    check_view(page, "shell")


def test_dashboard_works_below_a_mount_of_another_app(tmp_path: Path, page: Page) -> None:
    """The dashboard works below a mount of another application, even if the caller leaves out the slash."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", mount="/outlive") as site:
        page.goto(site.url.rstrip("/"))

        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        assert page.url.rstrip("/").endswith("/outlive")


@pytest.mark.browser
def test_keys_lead_everywhere(show: Show) -> None:
    """The palette, the list of keys, and g with a letter."""
    page = show("/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()

    page.keyboard.press("g")
    page.keyboard.press("w")
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("list the keys")
    check_view(page, "keys")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("overv")
    expect(page.get_by_role("option").first).to_contain_text("Overview")
    check_view(page, "palette")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


def test_a_key_signs_in_and_its_scope_says_what_is_offered(tmp_path: Path, page: Page) -> None:
    """The page says that a wrong key is wrong; the right one is kept over a reload, and forgotten by signing out."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth="keys") as site:
        secret = site.do(site.engine.keys.create("ann", scope="viewer")).secret
        page.goto(site.url)
        field = page.get_by_label("API key")
        field.fill("olv_wrong")
        field.press("Enter")
        expect(page.get_by_role("alert")).to_contain_text("does not know this key")
        check_view(page, "sign-in")
        field.fill(secret)
        field.press("Enter")
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.reload()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_label("API key")).to_be_visible()


@pytest.mark.browser
def test_the_theme_can_be_switched_and_is_kept(show: Show) -> None:
    """It follows the system until then."""
    page = show("/")
    page.emulate_media(color_scheme="light")
    paper = "() => getComputedStyle(document.body).backgroundColor"
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    light = page.evaluate(paper)
    page.get_by_role("button", name="Auto theme, switch to Light").click()
    page.get_by_role("button", name="Light theme, switch to Dark").click()
    dark = page.evaluate(paper)
    page.reload()

    assert light != dark
    expect(page.get_by_role("button", name="Dark theme")).to_be_visible()
    assert page.evaluate(paper) == dark


@pytest.mark.browser
def test_shell_fits_the_screen_of_a_phone(show: Show) -> None:
    """The shell is not wider than the screen of a phone, and its navigation is a menu."""
    page = show("/workers")
    page.set_viewport_size({"width": 360, "height": 640})
    expect(page.get_by_role("heading", name="Workers")).to_be_visible()

    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.get_by_role("button", name="Workers").click()
    expect(page.get_by_role("link", name="Overview")).to_be_visible()
    check_view(page, "phone")


@pytest.mark.browser
def test_a_key_for_some_workflows_begins_at_its_runs(tmp_path: Path, page: Page) -> None:
    """The overview is about the whole store, so it is not offered."""
    with Site(f"sqlite:{tmp_path / 'site.db'}", auth="keys") as site:
        secret = site.do(site.engine.keys.create("bob", scope="operator", workflows=["dash_order"])).secret
        for workflow in (shop.dash_order, shop.dash_patient):
            site.do(site.engine.start(workflow, id=workflow.name))
        page.goto(site.url)
        page.get_by_label("API key").fill(secret)
        page.keyboard.press("Enter")

        expect(page.get_by_role("heading", name="Runs")).to_be_visible()
        expect(page.get_by_role("row").filter(has_text="dash_order")).to_be_visible()
        expect(page.get_by_role("row")).to_have_count(2)
        expect(page.get_by_role("link", name="Overview")).to_have_count(0)


@pytest.mark.browser
def test_an_overview_whose_server_is_away_is_not_called_live(show: Show) -> None:
    """A page says that its server is away, names no command that may not have started it, and comes back by itself."""
    page = show("/")
    live = page.locator(".live")
    expect(live).to_be_visible()
    page.route("**/api/v1/overview", lambda route: route.abort())

    said = page.get_by_role("alert")
    expect(said).to_contain_text("The server cannot be reached.")
    expect(said).not_to_contain_text("outlive serve")
    expect(live).to_have_count(0)
    page.unroute("**/api/v1/overview")
    expect(live).to_be_visible()
    expect(said).to_have_count(0)
