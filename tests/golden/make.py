"""Writes the golden histories that are not there yet: `python -m tests.golden.make`.

One that is there is never written again: it was made by an earlier Outlive, and that is what makes it worth keeping.
"""

from __future__ import annotations

import asyncio
import os
import re
import tempfile
from pathlib import Path

import msgspec

from outlive._kernel.journal.codec import checksum, salt_of
from tests.golden.ask_stories import ASK_STORIES
from tests.golden.change_stories import CHANGE_STORIES
from tests.golden.flow_stories import FLOW_STORIES
from tests.golden.late_stories import LATE_STORIES
from tests.golden.limit_stories import LIMIT_STORIES
from tests.golden.lost_stories import LOST_STORIES
from tests.golden.machine_stories import MACHINE_STORIES
from tests.golden.more_stories import MORE_STORIES
from tests.golden.name_stories import NAME_STORIES
from tests.golden.queue_stories import QUEUE_STORIES
from tests.golden.relay_stories import RELAY_STORIES
from tests.golden.rest_stories import REST_STORIES
from tests.golden.retry_stories import RETRY_STORIES
from tests.golden.stories import STORIES
from tests.golden.tag_stories import TAG_STORIES
from tests.golden.talk_stories import TALK_STORIES
from tests.golden.wait_for_stories import WAIT_FOR_STORIES

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
ALL_STORIES = (
    STORIES
    | MORE_STORIES
    | MACHINE_STORIES
    | LIMIT_STORIES
    | WAIT_FOR_STORIES
    | REST_STORIES
    | RETRY_STORIES
    | ASK_STORIES
    | TAG_STORIES
    | TALK_STORIES
    | LATE_STORIES
    | LOST_STORIES
    | QUEUE_STORIES
    | FLOW_STORIES
    | NAME_STORIES
    | RELAY_STORIES
    | CHANGE_STORIES
)


def main() -> None:
    """Tell every story that has no file."""
    for name, tell in ALL_STORIES.items():
        path = FOLDER / f"{name}.jsonl"
        if not path.exists():
            with tempfile.TemporaryDirectory() as folder:
                path.write_text(without_paths(asyncio.run(tell(f"sqlite:{folder}/runs.db"))), "utf-8")  # type: ignore[arg-type]
            print(f"wrote {path.name}")  # noqa: T201


def without_paths(text: str) -> str:
    """A history that does not say where this checkout and this Python lie, nor on which machine; sealed again."""
    head, *lines = text.split("\n")
    salt = salt_of(msgspec.json.decode(head)["nonce"])
    return "\n".join([head, *(_without_paths(line, salt) for line in lines)])


def _without_paths(line: str, salt: int) -> str:
    body = line.replace(str(ROOT), "/srv/outlive").replace(str(Path(os.__file__).parent), "/usr/lib/python3")
    body = re.sub(r'"worker":"[^"#]*#', '"worker":"golden#', body)
    row = re.fullmatch(r'\{"seq":(\d+),"format":(\d+),"crc":\d+,"event":(.*)\}', body)
    if body == line or row is None:
        return body
    crc = checksum(int(row[1]), int(row[2]), row[3].encode(), salt)
    return f'{{"seq":{row[1]},"format":{row[2]},"crc":{crc},"event":{row[3]}}}'


if __name__ == "__main__":
    main()
