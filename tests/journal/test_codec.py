"""Events to rows and back: exactly; damage is found; old rows are read for ever, new ones are left alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outlive._kernel.journal import codec
from outlive._kernel.journal.codec import Row, checksum, open_journal, open_row, salt_of, seal
from outlive._kernel.journal.event import AnyEvent
from outlive.errors.store import CorruptJournalError, FormatTooNewError
from outlive.events import RunSucceeded, StepSucceeded, TimerFired
from tests.journal.events import AT, EVENTS, KINDS, NONCE, SAMPLES, events_of, json_payload
from tests.journal.values import QUICK

GOLDEN = Path(__file__).parent / "golden"
SALT = salt_of(NONCE)
NONCES = st.integers(0, 2**64 - 1)


def row_of(body: bytes, *, seq: int = 3, format_: int = 1) -> Row:
    """A row with a checksum that holds, whatever its body is."""
    return seq, format_, checksum(seq, format_, body, SALT), body


# -- Round trips ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_event_comes_back(kind: type[Any]) -> None:
    """With any values in its fields, at any place of any journal."""

    @QUICK
    @given(events_of(kind), NONCES, st.integers(0, 2**40))
    def check(event: AnyEvent, nonce: int, seq: int) -> None:
        salt = salt_of(nonce)
        assert open_row(seal(event, salt=salt, seq=seq), salt=salt, run_id="r") == event

    check()


def test_a_field_with_its_default_is_not_written() -> None:
    """A field of an event that has its default is not written."""
    assert seal(TimerFired(at=5, call="@timer"), salt=SALT, seq=1)[3] == b'{"t":"TimerFired","call":"@timer","at":5}'


def test_a_result_of_none_is_a_result() -> None:
    """null is a value, and not the absence of one."""
    event = StepSucceeded(at=5, call="a", result=json_payload(b"null"))
    back = open_row(seal(event, salt=SALT, seq=1), salt=SALT, run_id="r")

    assert isinstance(back, StepSucceeded)
    assert back.result.v == msgspec.Raw(b"null")


def test_a_damaged_row_is_named_with_its_seq_and_its_kind() -> None:
    """A damaged row is named with its number, and with its kind if its first letters can still be read."""
    seq, format_, crc, body = seal(StepSucceeded(at=5, call="a", result=json_payload(b"1")), salt=SALT, seq=3)

    with pytest.raises(CorruptJournalError, match=r"at event 3: checksum does not match \(StepSucceeded\)"):
        open_row((seq, format_, crc, body.replace(b'"a"', b'"b"')), salt=SALT, run_id="r")
    with pytest.raises(CorruptJournalError, match="at event 3: checksum does not match;"):
        open_row((seq, format_, crc, b"?" + body), salt=SALT, run_id="r")


def test_a_damaged_snapshot_is_what_is_said_to_be_damaged() -> None:
    """The rows before it are gone because it stands for them, and are not said to be missing."""
    seq, format_, crc, body = seal(SAMPLES["SnapshotTaken"], salt=salt_of(NONCE), seq=5_000)

    with pytest.raises(CorruptJournalError, match=r"run r is damaged at event 5000: .*\(SnapshotTaken\)"):
        open_journal([(seq, format_, crc, body.replace(b"worker-1", b"worker-9"))], nonce=NONCE, run_id="r")


# -- Golden rows ----------------------------------------------------------------------------------------------


def test_every_kind_has_a_golden_row() -> None:
    """A new kind of event gets its row in tests/journal/golden when it is added, and keeps it for ever."""
    assert {path.stem for path in GOLDEN.glob("*.json")} == {kind.__name__ for kind in KINDS} == set(SAMPLES)


@pytest.mark.parametrize("name", SAMPLES)
def test_golden_rows_are_read_for_ever(name: str) -> None:
    """Every row that release 0.1 wrote is read as the same event. The golden files are never edited."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    row = (golden["seq"], golden["format"], golden["crc"], golden["body"].encode())

    assert open_row(row, salt=salt_of(golden["nonce"]), run_id="r") == SAMPLES[name]


@pytest.mark.parametrize("name", SAMPLES)
def test_format_1_is_written_as_it_always_was(name: str) -> None:
    """Byte for byte, so that another release of format 1 can read it."""
    golden = json.loads((GOLDEN / f"{name}.json").read_text("utf-8"))
    row = seal(SAMPLES[name], salt=salt_of(golden["nonce"]), seq=golden["seq"])

    assert golden["format"] == 1
    if codec.FORMAT == 1:
        assert row == (golden["seq"], 1, golden["crc"], golden["body"].encode())


# -- Damage ---------------------------------------------------------------------------------------------------


def flips(row: Row) -> list[Row]:
    """The row with one bit changed, for every bit of it."""
    seq, format_, crc, body = row
    changed: list[Row] = [(seq ^ 1 << bit, format_, crc, body) for bit in range(63)]
    changed += [(seq, format_ ^ 1 << bit, crc, body) for bit in range(16)]
    changed += [(seq, format_, crc ^ 1 << bit, body) for bit in range(32)]
    for index, bit in ((index, bit) for index in range(len(body)) for bit in range(8)):
        flipped = bytearray(body)
        flipped[index] ^= 1 << bit
        changed.append((seq, format_, crc, bytes(flipped)))
    return changed


def test_every_single_bit_flip_in_a_row_is_found() -> None:
    """Exhaustively, for one row: number, format, checksum and body."""
    damaged = flips(seal(SAMPLES["StepSucceeded"], salt=SALT, seq=7))

    assert len(damaged) > 500
    for row in damaged:
        with pytest.raises(CorruptJournalError, match="checksum does not match"):
            open_row(row, salt=SALT, run_id="r")


@QUICK
@given(EVENTS, NONCES, st.integers(0, 2**40), st.data())
def test_a_bit_flip_in_any_row_is_found(event: AnyEvent, nonce: int, seq: int, data: st.DataObject) -> None:
    """Sampled, for many rows."""
    salt = salt_of(nonce)
    row = data.draw(st.sampled_from(flips(seal(event, salt=salt, seq=seq))))

    with pytest.raises(CorruptJournalError):
        open_row(row, salt=salt, run_id="r")


@QUICK
@given(EVENTS, st.data())
def test_a_row_that_was_cut_or_grew_is_found(event: AnyEvent, data: st.DataObject) -> None:
    """A truncated body is never taken for a whole one."""
    seq, format_, crc, body = seal(event, salt=SALT, seq=1)
    length = data.draw(st.integers(0, len(body) - 1))

    for changed in (body[:length], body + b" ", b" " + body, body + body):
        with pytest.raises(CorruptJournalError):
            open_row((seq, format_, crc, changed), salt=SALT, run_id="r")


def journal(nonce: int = NONCE) -> list[Row]:
    """A journal of some rows."""
    return [seal(event, salt=salt_of(nonce), seq=seq) for seq, event in enumerate(SAMPLES.values())]


def test_a_whole_journal_comes_back() -> None:
    """All events, in order."""
    assert open_journal(journal(), nonce=NONCE, run_id="r") == list(SAMPLES.values())
    assert open_journal([], nonce=NONCE, run_id="r") == []


def renumbered(row: Row, seq: int) -> Row:
    """A row at another place."""
    return (seq, *row[1:])


DAMAGED: dict[str, tuple[list[Row], int]] = {
    "swapped": ([*journal()[:3], renumbered(journal()[4], 3), renumbered(journal()[3], 4), *journal()[5:]], 3),
    "swapped with their numbers": ([*journal()[:3], journal()[4], journal()[3], *journal()[5:]], 3),
    "duplicated": ([*journal()[:3], journal()[2], *journal()[3:]], 3),
    "duplicated and renumbered": ([*journal()[:3], renumbered(journal()[2], 3), *journal()[4:]], 3),
    "missing": ([*journal()[:5], *journal()[6:]], 5),
    "missing at the beginning": (journal()[1:], 0),
    "missing and renumbered": ([*journal()[:5], *(renumbered(row, row[0] - 1) for row in journal()[6:])], 5),
    "foreign": ([*journal()[:4], journal(nonce=NONCE + 1)[4], *journal()[5:]], 4),
    "all foreign": (journal(nonce=NONCE ^ 1 << 63), 0),
}


@pytest.mark.parametrize("how", DAMAGED)
def test_a_damaged_journal_is_found_with_its_place(how: str) -> None:
    """Rows that changed places, came twice, are missing, or belong to another journal."""
    rows, place = DAMAGED[how]

    with pytest.raises(CorruptJournalError) as caught:
        open_journal(rows, nonce=NONCE, run_id="run-7")
    assert caught.value.seq == place
    assert caught.value.run_id == "run-7"
    assert f"journal of run run-7 is damaged at event {place}" in str(caught.value)


def test_the_same_event_has_another_checksum_at_every_place() -> None:
    """Number and nonce are in it."""
    event = SAMPLES["RunReleased"]
    sums = {seal(event, salt=salt_of(nonce), seq=seq)[2] for nonce in range(20) for seq in range(20)}

    assert len(sums) == 400


@pytest.mark.parametrize("body", [b"", b"{", b"nonsense", b"\xff\xfe", b'{"t":"TimerFired"'])
def test_a_row_that_is_not_json_is_damage_even_if_its_checksum_holds(body: bytes) -> None:
    """A row that is not JSON is damage even if its checksum holds."""
    with pytest.raises(CorruptJournalError):
        open_row(row_of(body), salt=SALT, run_id="r")


# -- Other releases -------------------------------------------------------------------------------------------


def test_a_row_of_a_newer_format_is_left_for_a_newer_worker() -> None:
    """It says so, and it is not called damaged."""
    with pytest.raises(FormatTooNewError, match=r"event 3 of run r was written by a later Outlive \(format 2"):
        open_row(row_of(b'{"t":"TimerFired","at":5,"call":"x"}', format_=2), salt=SALT, run_id="r")


@pytest.mark.parametrize(
    "body",
    [
        b'{"t":"RunTeleported","at":5}',
        b'{"t":"TimerFired","at":"soon","call":"x"}',
        b'{"t":"TimerFired","at":5}',
        b'{"t":"DetachedEnded","at":5,"run_id":"x","status":"exploded"}',
        b'{"at":5}',
        b"[]",
    ],
)
def test_a_kind_or_field_that_we_do_not_know_is_left_for_a_newer_worker(body: bytes) -> None:
    """The checksum holds, so a newer release has written it."""
    with pytest.raises(FormatTooNewError):
        open_row(row_of(body), salt=SALT, run_id="r")


def test_a_row_with_an_unknown_field_is_read() -> None:
    """A row with an optional field of a later release is read by this one."""
    event = open_row(row_of(b'{"t":"TimerFired","at":5,"call":"x","colour":"red"}'), salt=SALT, run_id="r")

    assert event == TimerFired(at=5, call="x")


def rename_who(fields: dict[str, Any]) -> dict[str, Any]:
    """An upcast from a format in which a call was called `who`."""
    return {"call" if name == "who" else name: value for name, value in fields.items()}


def to_microseconds(fields: dict[str, Any]) -> dict[str, Any]:
    """An upcast from a format in which instants were milliseconds."""
    return {**fields, "at": fields["at"] * 1000}


@pytest.fixture
def two_formats_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release whose format is 3, and that has learned what changed since 1."""
    monkeypatch.setattr(codec, "FORMAT", 3)
    monkeypatch.setattr(codec, "UPCASTS", {1: rename_who, 2: to_microseconds})


@pytest.mark.usefixtures("two_formats_later")
@pytest.mark.parametrize(
    ("format_", "body"),
    [
        (1, b'{"t":"StepSucceeded","at":5,"who":"a","result":{"v":{"x":[1,2.5,null,"\xc3\xa9"]}}}'),
        (2, b'{"t":"StepSucceeded","at":5,"call":"a","result":{"v":{"x":[1,2.5,null,"\xc3\xa9"]}}}'),
        (3, b'{"t":"StepSucceeded","at":5000,"call":"a","result":{"v":{"x":[1,2.5,null,"\xc3\xa9"]}}}'),
    ],
)
def test_a_row_of_an_older_format_goes_through_the_upcasts(format_: int, body: bytes) -> None:
    """From its own format on, oldest first; the values of users stay as they were."""
    event = open_row(row_of(body, format_=format_), salt=SALT, run_id="r")

    assert isinstance(event, StepSucceeded)
    assert (event.at, event.call) == (5000, "a")
    assert msgspec.json.decode(event.result.v) == {"x": [1, 2.5, None, "é"]}  # type: ignore[arg-type]


@pytest.mark.usefixtures("two_formats_later")
def test_a_release_writes_its_own_format_and_reads_it() -> None:
    """Old and new rows stand side by side in one journal."""
    new = seal(RunSucceeded(at=AT, result=json_payload(b"1")), salt=SALT, seq=1)
    old = row_of(b'{"t":"TimerFired","at":5,"who":"x"}', seq=0)

    assert new[1] == 3
    assert open_journal([old, new], nonce=NONCE, run_id="r") == [
        TimerFired(at=5000, call="x"),
        RunSucceeded(at=AT, result=json_payload(b"1")),
    ]


@pytest.mark.usefixtures("two_formats_later")
@pytest.mark.parametrize(
    ("format_", "body"), [(0, b'{"t":"TimerFired","at":5,"call":"x"}'), (-1, b"{}"), (1, b"[]"), (2, b'{"t":"x"}')]
)
def test_an_old_row_that_no_upcast_understands_is_damaged(format_: int, body: bytes) -> None:
    """There was never such a row."""
    with pytest.raises(CorruptJournalError):
        open_row(row_of(body, format_=format_), salt=SALT, run_id="r")
