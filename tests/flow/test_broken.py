"""Documents that people get wrong, each with the lines that are said about it.

The first lines of each file in `broken` are comments with everything that is wrong with it: `# 7:5: message`. The lines
are those of the file itself.
"""

from pathlib import Path

import pytest

from tests.flow.corpus import found_in, problems_in

FOLDER = Path(__file__).parent / "broken"
FILES = sorted(FOLDER.glob("*.yaml"))


def expected(text: str) -> list[str]:
    """What the comments at the top of a file say."""
    lines = text.splitlines()
    count = next((number for number, line in enumerate(lines) if not line[:3].strip("# ").isdigit()), len(lines))
    return [line.removeprefix("# ") for line in lines[:count]]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_broken_document_gets_a_clear_message_with_its_line(file: Path) -> None:
    """Each broken document gets exactly the messages, with lines, that stand beside it."""
    text = file.read_text("utf-8")

    assert expected(text) == problems_in(text)


def test_broken_documents_are_many() -> None:
    """There are at least 100 broken documents, with more than 25 different codes."""
    assert len(FILES) >= 100
    codes = {problem.code for file in FILES for problem in found_in(file.read_text("utf-8"))}
    assert len(codes) > 25, sorted(codes)
