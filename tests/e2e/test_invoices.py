"""The page of examples/invoices: orders, decisions and letters, live in a browser."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator
from zlib import crc32

import pytest
from playwright.sync_api import Locator, Page, expect

from outlive_conformance.servers.postgres import PostgresServer
from tests.integrations.invoices import invoices_running

LATE = 60_000.0
"""Milliseconds that a process may take to be there again on a busy machine."""
HONEST_FROM = 68
"""From this share on the bank does what it should at once; see `outside/bank.py`."""


def honest_numbers() -> Iterator[str]:
    """Numbers of invoices that the bank makes no trouble with."""
    names = (f"page-{number}" for number in itertools.count())
    return (name for name in names if crc32(name.encode()) % 100 >= HONEST_FROM)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_the_page_shows_orders_decisions_and_letters_live(
    page: Page, postgres_server: PostgresServer, postgres_database: str
) -> None:
    """A killed web process is started again, and the page goes on where it was."""
    names = honest_numbers()
    page.add_init_script(f"crypto.randomUUID = (list => () => list.shift())({[next(names) for _ in range(3)]})")

    def order(cents: int) -> Locator:
        page.get_by_label("Cents").fill(str(cents))
        page.get_by_role("button", name="Order").click()
        return page.locator("#orders li").last

    with invoices_running(postgres_server.store_url(postgres_database)) as running:
        page.goto(running.web)
        lamp = order(4200)
        expect(lamp.locator("code")).to_have_text("done", timeout=LATE)

        palace = order(100_000)
        expect(palace.locator("code")).to_have_text("waits for credit", timeout=LATE)
        os.kill(running.pids["web"], signal.SIGKILL)
        page.locator("#approvals").get_by_role("button", name="Yes").click(timeout=LATE)
        expect(palace.locator("code")).to_have_text("done", timeout=LATE)

        lamp.get_by_role("button", name="Letter").click()
        page.locator("#approvals").get_by_role("button", name="No").click(timeout=LATE)
        expect(lamp.locator("p")).to_contain_text("page-", timeout=LATE)

        changed = order(200_000)
        expect(changed.locator("code")).to_have_text("waits for credit", timeout=LATE)
        changed.get_by_role("button", name="Cancel").click()
        expect(page.locator("#approvals li")).to_have_count(0, timeout=LATE)
