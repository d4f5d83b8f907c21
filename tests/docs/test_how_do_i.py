"""The page that lists each feature with what one writes names only what there is."""

import re

import outlive
from tests.docs.page import DOCS, prose_of

PAGE = DOCS / "how-do-i.md"
NAME = re.compile(r"(?<![\w./])(outlive|engine)((?:\.[a-zA-Z_]\w*)+)")


async def test_every_name_of_the_features_exists() -> None:
    """In `outlive`, or on an engine that is open."""
    code = " ".join(re.findall(r"`([^`]+)`", prose_of(PAGE)))
    missing = []
    async with outlive.Engine("memory:", worker=False) as engine:
        roots = {"outlive": outlive, "engine": engine}
        for root, path in NAME.findall(code):
            found: object = roots[root]
            for name in path[1:].split("."):
                found = getattr(found, name, None)
            if found is None:
                missing.append(f"{root}{path}")

    assert len(NAME.findall(code)) > 20
    assert missing == []
