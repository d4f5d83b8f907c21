"""Plain words: how often the package uses words that hide who does what is counted, and may only fall."""

import re
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "outlive"
COY = re.compile(r"\b(whoever|somebody|nobody|anew|mend|mended|wish|wishes|herald|told)\b", re.IGNORECASE)
COY_MAX = 5
"""Lower it when you have made it fewer. Name the worker, the caller or the person instead."""


def test_the_package_hides_less_and_less_who_does_what() -> None:
    """In names, comments, docstrings and messages."""
    files = [path for kind in ("*.py", "*.sql") for path in PACKAGE.rglob(kind)]
    found = Counter({path.relative_to(PACKAGE).as_posix(): len(COY.findall(path.read_text("utf-8"))) for path in files})

    most = ", ".join(f"{name} {count}" for name, count in found.most_common(10))
    assert found.total() <= COY_MAX, f"{found.total()} coy words, most in {most}"
