"""Two releases of the application: as it is in `examples`, and one that thanks a customer in a mail of its own.

The change is behind `outlive.patched`, as the guide about versions says, so that runs under way can go on with it.
After a roll-back, the first release does not have what some runs have come past: it leaves these to the second one.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from proof.live.trial import EXAMPLES

BEFORE = """    outlive.publish(stage="done")
"""
AFTER = """    if outlive.patched("thanks"):
        await to_the_end(mail(order.customer, "thanks", number, "Thank you."))
    outlive.publish(stage="done")
"""


def make_releases(folder: Path) -> dict[int, Path]:
    """A folder for each release, that goes where Python looks for modules."""
    folders = {number: folder / f"release-{number}" for number in (1, 2)}
    for each in folders.values():
        shutil.copytree(EXAMPLES / "invoices", each / "invoices", ignore=shutil.ignore_patterns("__pycache__"))
    changed = folders[2] / "invoices" / "checkout.py"
    text = changed.read_text("utf-8")
    assert text.count(BEFORE) == 1, "checkout.py does not end as proof/live/releases.py expects"
    changed.write_text(text.replace(BEFORE, AFTER), "utf-8")
    return folders
