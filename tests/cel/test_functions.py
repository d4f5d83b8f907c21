"""Every function of the fixed list, and what it does with the wrong values."""

from typing import Any

import pytest

from outlive._cel import ExpressionError, parse
from outlive._cel.functions import FUNCTIONS

VALUES: list[tuple[str, Any]] = [
    ("[size('aé'), size([1]), size({'a': 1}), 'abc'.size()]", [2, 1, 1, 3]),
    ("[1, 1.5, 'a', true, null, [], {}].map(x, type(x)).join(' ')", "int double string bool null_type list map"),
    ("[string(1), string(1.5), string(2.0), string(true), string('a')]", ["1", "1.5", "2", "true", "a"]),
    ("[int('-12'), int(1.9), int(-1.9), int(3), int(true)]", [-12, 1, -1, 3, 1]),
    ("[double('1.5'), double(2), double('1e3')]", [1.5, 2.0, 1000.0]),
    ("[bool('true'), bool('False'), bool(true)]", [True, False, True]),
    ("['abc'.contains('bc'), 'abc'.startsWith('a'), 'abc'.endsWith('b')]", [True, True, False]),
    ("['abcb'.indexOf('b'), 'abcb'.lastIndexOf('b'), 'a'.indexOf('x')]", [1, 3, -1]),
    ("['ÄaB'.lowerAscii(), 'äaB'.upperAscii(), '  x\\n'.trim()]", ["Äab", "äAB", "x"]),
    ("['a,b,,'.split(','), 'ab'.split('')]", [["a", "b", "", ""], ["a", "b"]]),
    ("[[1, 'a', true].join('-'), ['a', 'b'].join(), [].join(',')]", ["1-a-true", "ab", ""]),
    ("'aXbX'.replace('X', 'yy')", "ayybyy"),
    ("['abcd'.substring(2), 'abcd'.substring(1, 3), 'ab'.charAt(1), 'ab'.charAt(2)]", ["cd", "bc", "b", ""]),
    ("['abc'.reverse(), [1, 2].reverse()]", ["cba", [2, 1]]),
    ("[abs(-2), abs(-1.5), floor(-1.5), ceil(1.2)]", [2, 1.5, -2, 2]),
    ("[round(2.5), round(-2.5), round(2.675, 2), round(7), round(1e14 + 0.5, 12)]", [3, -3, 2.68, 7, 1e14 + 0.5]),
    ("[min([3, 1.5, 2]), max(3, 1), min('b', 'a'), max([true, false])]", [1.5, 3, "a", True]),
    ("[[1, 2.5].sum(), [].sum()]", [3.5, 0]),
    ("[[3, 1.5, 2].sort(), ['b', 'a'].sort(), [true, false].sort()]", [[1.5, 2, 3], ["a", "b"], [False, True]]),
    ("['ab', 'aa', 'b'].sortBy(x, x.charAt(0))", ["ab", "aa", "b"]),
    ("['abab'.lastIndexOf('ab'), 'ab'.lastIndexOf(''), ''.lastIndexOf('a')]", [2, 2, -1]),
    ("[1, 1.0, true, '1', [1], [1.0], {'a': 1}, {'a': 1}, null, null].distinct()", [1, True, "1", [1], {"a": 1}, None]),
    ("[[1, [2, [3]]].flatten(), [1, [2, [3]]].flatten(2), [[]].flatten()]", [[1, 2, [3]], [1, 2, 3], []]),
    ("[range(3), range(2, 4), range(4, 2)]", [[0, 1, 2], [2, 3], []]),
    ("[[1, 2, 3].slice(1), [1, 2, 3].slice(0, 2)]", [[2, 3], [1, 2]]),
    ("[[1, 2].first(), [1, 2].last(), [].first()]", [1, 2, None]),
    ("zip(['a'], [1])", [["a", 1]]),
    ("[{'a': 1}.keys(), {'a': 1}.values()]", [["a"], [1]]),
    ("{'a': 1}.entries()", [{"key": "a", "value": 1}]),
    ("[fromEntries({'a': 1}.entries()), fromEntries(zip(['b'], [2]))]", [{"a": 1}, {"b": 2}]),
    ("merge({'a': 1, 'b': 1}, {'b': 2}, {})", {"a": 1, "b": 2}),
    ("toJson({'b': [1, 2.5, null, true], 'a': 'é\\n'})", '{"a":"é\\n","b":[1,2.5,null,true]}'),
    ("fromJson('{\"a\": [1, 2.5, null]}')", {"a": [1, 2.5, None]}),
    ("[base64.encode('hé'), base64.decode('aMOp')]", ["aMOp", "hé"]),
    ("hash.sha256('')", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ("urlEncode('a b/ü?')", "a%20b%2F%C3%BC%3F"),
    ("timestamp(epoch('2026-05-31T23:30:00+02:00') + duration('1h30m'))", "2026-05-31T23:00:00Z"),
    ("timestamp('2026-01-01')", "2026-01-01T00:00:00Z"),
    ("[timestamp(0), timestamp(1.5)]", ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01.5Z"]),
    ("[duration('1d'), duration('250ms'), duration('-1h'), duration('1.5s')]", [86400, 0.25, -3600, 1.5]),
    ("epoch('2026-01-02') - epoch('2026-01-01')", 86400),
    ("'2026-05-31T13:14:15Z'.getFullYear()", 2026),
    ("['2026-05-31T13:14:15Z'].map(t, [t.getMonth(), t.getDate(), t.getDayOfWeek()])", [[4, 31, 0]]),
    ("['2026-05-31T13:14:15Z'].map(t, [t.getHours(), t.getMinutes(), t.getSeconds()])", [[13, 14, 15]]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value"), VALUES)
def test_function(text: str, value: Any) -> None:
    """It gives what the documentation says, in the right type."""
    found = parse(text).evaluate({})

    assert value == found
    assert repr(value) == repr(found)


def test_every_function_is_tested() -> None:
    """By its name, in the table above."""
    texts = " ".join(text for text, _ in VALUES)

    assert [name for name in FUNCTIONS if f"{name}(" not in texts] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("size(1)", "takes a string, a list or a map, and this is the number 1"),
        ("'a'.contains(1)", "takes a string, and this is the number 1; write string(x)"),
        ("string(null)", "null has no text"),
        ("string([])", "a list of 0 has no text; write toJson(x)"),
        ("int('1.5')", "the string '1.5' is not an integer"),
        ("int('99999999999999999999')", "is not an integer"),
        ("int(1e30)", "is not an integer"),
        ("int(-9223372036854775808.0)", "is not an integer"),
        ("double('nan')", "is not a double"),
        ("double('1e999')", "is not a double"),
        ("bool('yes')", "is not a bool"),
        ("[1, 'a'].sort()", "have no order"),
        ("[[1], [2]].sort()", "have no order"),
        ("[null].sort()", "have no order"),
        ("[1, true].sort()", "have no order"),
        ("[null].sum()", "takes a number, and this is null"),
        ("min([])", "at least one value; look at size(list) first"),
        ("'abc'.substring(2, 1)", "2 to 1 is not within 0 to 3"),
        ("'abc'.substring(-1)", "is not within"),
        ("[1].slice(0, 2)", "0 to 2 is not within 0 to 1"),
        ("zip([1], [])", "the lists have 1 and 0 elements"),
        ("fromEntries([1])", "an entry is"),
        ("fromJson('{')", "the text is not JSON"),
        ("fromJson('NaN')", "the text is not JSON"),
        ("fromJson('1e999')", "too large"),
        ("fromJson('123456789012345678901234')", "more than 64 bits"),
        ('fromJson(\'{"a": 1, "a": 2}\')', "a key comes twice"),
        ("base64.decode('%')", "is not base64"),
        ("base64.decode('/w==')", "is not base64 of a UTF-8 text"),
        ("timestamp('yesterday')", "is not a time; write it like"),
        ("timestamp('2026-02-30')", "is not a time"),
        ("timestamp(1e300)", "is not a time"),
        ("duration('1 hour')", "is not a span of time; write it like"),
        ("[1].flatten(-1)", "0 to 100 levels"),
        ("round(1.5, 20)", "0 to 15 digits"),
        ("keys([])", "takes a map, and this is a list of 0"),
        ("abs(-9223372036854775808)", "more than 64 bits"),
        ("[9223372036854775807, 1].sum()", "more than 64 bits"),
    ],
)
def test_wrong_values(text: str, message: str) -> None:
    """The error says what was found."""
    with pytest.raises(ExpressionError) as raised:
        parse(text).evaluate({})

    assert message in str(raised.value)
