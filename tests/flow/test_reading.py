"""From YAML or JSON to plain data with places: the rules of YAML 1.2, and what is refused."""

import json
import subprocess
import sys
import time
import tracemalloc
from typing import Any

import pytest
import yaml

from outlive._features.flows.document.reading import BYTES_MAX, DEPTH_MAX, read
from outlive.flow import FlowError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("YES", "YES"),
        ("y", "y"),
        ("2026-01-31", "2026-01-31"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("1.2.3", "1.2.3"),
        ("0b11", "0b11"),
        ("=", "="),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("-17", -17),
        ("+1", 1),
        ("0x1F", 31),
        ("0o17", 15),
        (".5", 0.5),
        ("1e3", 1000.0),
        ('"true"', "true"),
        ("'5'", "5"),
        (str(2**64 - 1), 2**64 - 1),
        (str(-(2**63)), -(2**63)),
    ],
)
def test_a_plain_word_means_what_the_core_schema_of_yaml_1_2_says(text: str, value: Any) -> None:
    """So a country code of Norway is text, and so is a time of day. [S19]"""
    found = read(f"value: {text}").data["value"]

    assert (type(value), value) == (type(found), found)


def test_a_key_is_always_text() -> None:
    """A key of a YAML map is text, as in JSON, even if it looks like a number, null or a date."""
    assert {"on": 1, "1": 2, "null": 3, "2026-01-01": 4} == read("on: 1\n1: 2\nnull: 3\n2026-01-01: 4").data


@pytest.mark.parametrize("indent", [None, 2, "\t"])
def test_json_is_accepted(indent: int | str | None) -> None:
    """With the escapes that only JSON has, and however it is laid out."""
    data: dict[str, Any] = {"name": '\U0001f600 \\ud83d\\ude00 \t"/', "list": [1, -2.5, True, None, {}], "é": "\u2028"}
    text = json.dumps(data, indent=indent)

    assert data == read(text).data == read(text.encode()).data
    assert data == read(text.replace("/", "\\/")).data


def refusal(text: str | bytes) -> FlowError:
    """How a document is refused."""
    with pytest.raises(FlowError) as caught:
        read(text, "a.yaml")
    return caught.value


@pytest.mark.parametrize(
    ("text", "line", "column", "code"),
    [
        ("a: 1\nb:\n  c: 1\n  c: 2", 4, 3, "duplicate-key"),
        ('{"a": 1,\n "a": 2}', 2, 2, "duplicate-key"),
        ("a: &x 1", 1, 4, "anchor"),
        ("a: 1\nb: *x", 2, 4, "alias"),
        ("a:\n  <<: {b: 1}", 2, 3, "merge-key"),
        ("a: !!str 5", 1, 4, "tag"),
        ("a: !!python/object/apply:os.system [x]", 1, 4, "tag"),
        ("a: 1\n---\nb: 1", 2, 1, "several-documents"),
        ("%YAML 1.1\n---\na: 1", 1, 1, "directive"),
        ("? [a]\n: 1", 1, 3, "key"),
        ("a:\n\tb: 1", 2, 1, "syntax"),
        ("a: [1, 2", 1, 4, "syntax"),
        ("a: 1\nb: \x07", 2, 4, "character"),
        ("a: .inf", 1, 4, "number"),
        ("a: 1e999", 1, 4, "number"),
        ("a: 01234", 1, 4, "number"),
        (f"a: {2**64}", 1, 4, "number"),
        (b"a: \xff", 1, 1, "encoding"),
        ("a: \ud800", 1, 1, "encoding"),
        ("", 1, 1, "empty"),
        ("# only a comment", 1, 1, "empty"),
    ],
)
def test_ambiguous_yaml_is_refused_with_its_place(text: str | bytes, line: int, column: int, code: str) -> None:
    """YAML that could be misunderstood is refused with its line and column. [S19]"""
    problems = refusal(text).problems

    assert (line, column, code) in [(each.line, each.column, each.code) for each in problems]


def test_several_mistakes_are_reported_at_once() -> None:
    """One line each, in the order of the text."""
    error = refusal("a: 1\na: 2\nb: 007\nc: !x 1")

    assert ["duplicate-key", "number", "tag"] == [each.code for each in error.problems]
    assert str(error).splitlines()[0] == "a.yaml:2:1: a is given twice, first in line 1; keep one of the two"


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "[" * (BYTES_MAX - 1),
        "{a: " * (BYTES_MAX // 5),
        "- " * (BYTES_MAX // 3),
        "a: 0x" + "f" * 1_000_000,
        "a: " + "9" * 1_000_000,
        "x" * (2 * BYTES_MAX),
        "&a " * 300_000,
        '"' + "\\u" * 300_000,
        "{" + "\\ud800" * 100_000,
    ],
    ids=[
        "laughs",
        "deep lists",
        "deep maps",
        "deep entries",
        "hex",
        "digits",
        "too large",
        "anchors",
        "escapes",
        "halves",
    ],
)
def test_a_hostile_document_costs_little(text: str) -> None:
    """Refused at once, however large it would become. [S19]"""
    began = time.process_time()
    tracemalloc.start()
    try:
        refusal(text)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert time.process_time() - began < 0.5
    assert peak < 50_000_000


def test_the_depth_that_is_allowed_is_read() -> None:
    """One level more is refused."""
    assert read("[" * DEPTH_MAX + "]" * DEPTH_MAX).data
    assert refusal("[" * (DEPTH_MAX + 1)).problems[0].code == "too-deep"


def test_a_problem_inside_a_text_has_its_own_place() -> None:
    """Through quotes, block text and folding."""
    text = 'a:\n  b: "x ${{ y }}"\n  c: |\n    one\n    two ${{ z }}\n  d: >\n    fold\n    ed ${{ w }}\n'
    reading = read(text)

    for name, place in (("b", (2, 9)), ("c", (5, 9)), ("d", (8, 8))):
        value = reading.data["a"][name]
        assert place == reading.positions.in_text(("a", name), value, value.index("$"))


def test_a_missing_field_is_reported_at_its_map() -> None:
    """A missing field is reported at the name of the map that lacks it."""
    positions = read("steps:\n  one:\n    use: x").positions

    assert (2, 3) == positions.of(("steps", "one"))
    assert (2, 3) == positions.of(("steps", "one", "with", "url"))
    assert (3, 10) == positions.of(("steps", "one", "use"))
    assert (3, 5) == positions.of_key(("steps", "one", "use"))


def test_yaml_is_read_alike_without_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """YAML is read alike, with the same positions, where PyYAML was built without libyaml."""
    text = 'a:\n  - {b: "${{ x }}", c: no}\n  - 1\n'
    fast = read(text)
    monkeypatch.delattr(yaml, "CSafeLoader", raising=False)
    slow = read(text)

    assert fast.data == slow.data
    assert fast.positions.of(("a", 0, "c")) == slow.positions.of(("a", 0, "c")) == (2, 24)


def test_importing_outlive_loads_no_yaml_and_no_flows() -> None:
    """A module that only defines workflows should import in no time."""
    rooms = ("yaml", "outlive._features", "outlive._cel")
    code = f"import sys, outlive; print([each for each in sys.modules if each.startswith({rooms})])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout == "[]\n"
