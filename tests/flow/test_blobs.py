"""Blobs of flows: Stepflow's suite for blob stores, and files below a folder."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from outlive._features.flows.outside import blobs
from outlive.errors.outside import BlobError


def test_a_blob_is_what_was_stored(tmp_path: Path) -> None:
    """A blob comes back with its bytes, its type, and its file name if it has one. [SF-B1 SF-B3 SF-B7 SF-B9 S28]"""
    data = bytes(range(256))
    id = blobs.put(tmp_path, data, type="binary", filename="all.bin")
    other = blobs.put(tmp_path, b"{}", type="data")

    assert blobs.get(tmp_path, id) == (blobs.Head(size=256, type="binary", filename="all.bin"), data)
    assert blobs.get(tmp_path, other) == (blobs.Head(size=2, type="data"), b"{}")


def test_the_same_bytes_are_one_blob(tmp_path: Path) -> None:
    """Known by the SHA-256 of its bytes; what the first one said stays. [SF-B2 SF-B8]"""
    first = blobs.put(tmp_path, b"same", type="text")
    second = blobs.put(tmp_path, b"same", type="data", filename="x")

    assert first == second == hashlib.sha256(b"same").hexdigest()
    found = blobs.get(tmp_path, first)
    assert found is not None
    assert found[0].type == "text"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 1
    (file,) = (path for path in tmp_path.rglob("*") if path.is_file())
    assert file.stat().st_mode & 0o077 == 0


def test_an_unknown_blob_is_not_an_error(tmp_path: Path) -> None:
    """A blob that is unknown, or whose id cannot be one, is None. [SF-B4]"""
    for id in ("0" * 64, "", "..", "../x", "F" * 64, "0" * 63 + "\n"):
        assert blobs.get(tmp_path, id) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"x",
        b"no head\ndata",
        b'{"size":4,"type":"t"}\nda',
        b'{"size":4,"type":"t"}\ndatadata',
        b'{"size":4,"type":"t"}\ndatb',
    ],
)
def test_a_damaged_blob_is_an_error(tmp_path: Path, damage: bytes) -> None:
    """Empty, too short, too long, without a head, or with other bytes."""
    id = blobs.put(tmp_path, b"data", type="t")
    (tmp_path / id[:2] / id).write_bytes(damage)

    with pytest.raises(BlobError, match="is damaged"):
        blobs.get(tmp_path, id)


def test_a_blob_that_cannot_be_written_leaves_nothing_behind(tmp_path: Path) -> None:
    """A write that failed leaves no blob, and neither does the half file of a dead process."""
    id = blobs.id_of(b"data")
    (tmp_path / id[:2]).write_text("in the way")
    with pytest.raises(BlobError, match="cannot be written"):
        blobs.put(tmp_path, b"data", type="t")
    (tmp_path / id[:2]).unlink()
    (tmp_path / id[:2]).mkdir()
    (tmp_path / id[:2] / ".new-left").write_text("half")
    assert blobs.get(tmp_path, id) is None
    blobs.put(tmp_path, b"data", type="t")
    assert blobs.get(tmp_path, id) is not None


def test_only_plain_files_below_the_folder_are_read(tmp_path: Path) -> None:
    """No link at any place of the way, no pipe, no folder, not more than allowed."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    (inside / "sub" / "plain").write_bytes(b"plain")
    (inside / "link").symlink_to(outside / "secret")
    (inside / "folder").symlink_to(outside)
    os.mkfifo(inside / "pipe")

    assert blobs.read_file(inside, ["sub", "plain"], bytes_max=5) == b"plain"
    for parts in (["link"], ["folder", "secret"], ["pipe"], ["sub"], ["missing"]):
        with pytest.raises(OSError):  # noqa: PT011
            blobs.read_file(inside, parts, bytes_max=5)
    with pytest.raises(OSError, match="larger than 4 bytes"):
        blobs.read_file(inside, ["sub", "plain"], bytes_max=4)
