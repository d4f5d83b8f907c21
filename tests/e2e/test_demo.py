"""The demo's page: a person kills a worker of the demo, and another one goes on."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Page, expect

from tests.e2e.reading import check_view

END_SECONDS_MAX = 20.0


@pytest.mark.browser
@pytest.mark.timeout(180)  # It plays the whole demo first, on a machine that may be busy.
def test_a_worker_is_killed_on_the_page_and_another_one_goes_on(tmp_path: Path, page: Page) -> None:
    """The order that the demo has interrupted is shown first; Ctrl-C ends it with the code of the ledger."""
    words = ["demo", "--stay", "--no-browser", "--orders", "6", "--port", "0", "--dir", str(tmp_path)]
    demo = subprocess.Popen([sys.executable, "-m", "outlive.cli", *words], stdout=subprocess.PIPE, text=True)
    try:
        assert demo.stdout is not None
        said = ""
        while "Ctrl-C ends it" not in said:
            line = demo.stdout.readline()
            assert line, said
            said += line
        assert "Nothing was lost and nothing was done twice." in said
        run, kills = re.findall(r"http://\S+", said)
        page.goto(run)
        expect(page.get_by_role("heading", name="order-").first).to_be_visible()
        page.get_by_role("link", name="was lost").first.click()
        expect(page.get_by_role("region", name="what is chosen")).to_contain_text("Ran again")
        page.set_viewport_size({"width": 1280, "height": 600})  # The timeline, and no part of the events below it.
        check_view(page, "order-killed")

        page.goto(kills)
        worker = page.get_by_role("row").filter(has=page.get_by_role("cell", name="A", exact=True))
        worker.get_by_role("button", name="kill -9 this worker").click()

        expect(page.get_by_text(re.compile(r"went on in worker B after \d+\.\d\d s")).first).to_be_visible(
            timeout=30_000
        )
        expect(page.locator(".facts div").filter(has_text="charged twice")).to_have_text("charged twice0")
        check_view(page, "demo")
        assert 403 == status_of(f"{kills.partition('#')[0]}api/v1/demo/kill", origin="http://elsewhere.example")
        demo.send_signal(signal.SIGINT)
        assert 0 == demo.wait(END_SECONDS_MAX)
    finally:
        demo.kill()
        demo.communicate()


def status_of(url: str, *, origin: str) -> int:
    """How a request of a page of another site is answered."""
    try:
        with urlopen(Request(url, b'{"worker": "B"}', {"origin": origin}), timeout=END_SECONDS_MAX) as answer:
            return int(answer.status)
    except HTTPError as error:
        with error:
            return error.code
