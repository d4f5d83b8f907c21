"""Writes the golden histories that are not there yet: `python -m tests.golden.make`.

One that is there is never written again: it was made by an earlier Outlive, and that is what makes it worth keeping.
"""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from tests.golden.ask_stories import ASK_STORIES
from tests.golden.late_stories import LATE_STORIES
from tests.golden.limit_stories import LIMIT_STORIES
from tests.golden.machine_stories import MACHINE_STORIES
from tests.golden.more_stories import MORE_STORIES
from tests.golden.retry_stories import RETRY_STORIES
from tests.golden.stories import STORIES
from tests.golden.tag_stories import TAG_STORIES
from tests.golden.talk_stories import TALK_STORIES
from tests.golden.wait_for_stories import WAIT_FOR_STORIES

FOLDER = Path(__file__).parent
ALL_STORIES = (
    STORIES
    | MORE_STORIES
    | MACHINE_STORIES
    | LIMIT_STORIES
    | WAIT_FOR_STORIES
    | RETRY_STORIES
    | ASK_STORIES
    | TAG_STORIES
    | TALK_STORIES
    | LATE_STORIES
)


def main() -> None:
    """Tell every story that has no file."""
    for name, tell in ALL_STORIES.items():
        path = FOLDER / f"{name}.jsonl"
        if not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                path.write_text(asyncio.run(tell(f"sqlite:{folder}/runs.db")), "utf-8")  # type: ignore[arg-type]
            print(f"wrote {path.name}")  # noqa: T201


if __name__ == "__main__":
    main()
