"""`use: blob`: data that is known by its hash, and files of a folder that the operator names."""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import UNSET

from outlive._cel import ANY, MAP, NUMBER, STRING, Type
from outlive._features.flows.built_in.contract import Call, OneOf
from outlive._features.flows.outside import blobs, settings
from outlive.errors.outside import BlobError, NotAllowedError, RequestError

Form = Literal["auto", "json", "text", "base64"]

_JSON, _TEXT, _BINARY = "data", "text", "binary"
_FORMS = {_JSON: "json", _TEXT: "text"}
_SUFFIXES = {".json": "json", ".csv": "text", ".jsonl": "text", ".md": "text", ".txt": "text", ".xml": "text"}


class BlobArguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """`with` of a blob step: one of `put`, `text`, `base64`, `get` and `file`."""

    put: Any = UNSET
    """Store JSON data."""
    text: str | None = None
    """Store text."""
    base64: str | None = None
    """Store bytes, which are given in Base64."""
    get: str | None = None
    """The id of a blob; the result is null if there is none."""
    file: str | None = None
    """A file, by its path below the folder of the settings."""
    type: str | None = None
    """To store: what it is called. To get: the result is null if the blob has another type."""
    filename: str | None = None
    """To store: a name for people."""
    form: Form = "auto"
    """To get or load: what `data` of the result is."""


class Blob:
    """`use: blob`."""

    name = "blob"
    arguments = BlobArguments
    one_of = OneOf(("put", "text", "base64", "get", "file"))
    result: Type = MAP({"id": STRING, "size": NUMBER, "type": STRING, "filename": STRING, "data": ANY})

    async def run(self, call: Call, given: BlobArguments) -> Any:
        """One journaled step."""
        fields = (given.text, given.base64, given.get, given.file)
        if sum(each is not None for each in fields) + (given.put is not UNSET) != 1:
            raise RequestError("a blob step", "has one of put, text, base64, get and file")
        do = get_blob if given.get is not None else load_file if given.file is not None else put_blob
        return await call.step(do, given)


def put_blob(given: BlobArguments) -> Any:
    """Store a blob; what it is known by."""
    allowed = settings.current().blobs
    folder = _folder(allowed.folder, "blobs")
    data, kind = _data_of(given)
    if len(data) > allowed.bytes_max:
        raise BlobError("a blob", f"has {len(data)} bytes, and [flows.blobs] bytes_max allows {allowed.bytes_max}")
    id = blobs.put(folder, data, type=given.type or kind, filename=given.filename)
    found = blobs.get(folder, id)
    assert found is not None, "it was just written"
    return _described(id, found[0])


def get_blob(given: BlobArguments) -> Any:
    """A blob, or None if there is none of this id and type."""
    assert given.get is not None
    found = blobs.get(_folder(settings.current().blobs.folder, "blobs"), given.get)
    if found is None or (given.type is not None and found[0].type != given.type):
        return None
    head, data = found
    form = _FORMS.get(head.type, "base64") if given.form == "auto" else given.form
    return {**_described(given.get, head), "data": _shown(f"blob {given.get}", data, form)}


def load_file(given: BlobArguments) -> Any:
    """A file of the folder that flows may read."""
    assert given.file is not None
    allowed = settings.current().files
    folder = _folder(allowed.folder, "files")
    parts = given.file.split("/")
    if any(part in ("", ".", "..") or "\0" in part or "\\" in part for part in parts):
        raise BlobError(f"file {given.file!r}", "is not a path below a folder: write reports/today.csv")
    try:
        data = blobs.read_file(folder, parts, bytes_max=allowed.bytes_max)
    except OSError as error:
        raise BlobError(f"file {given.file!r}", f"cannot be loaded: {error.strerror or error}") from None
    form = _SUFFIXES.get(Path(given.file).suffix.lower(), "base64") if given.form == "auto" else given.form
    shown = _shown(f"file {given.file!r}", data, form)
    return {"id": blobs.id_of(data), "size": len(data), "filename": parts[-1], "data": shown}


def _folder(folder: str | None, table: str) -> Path:
    if folder is None:
        raise NotAllowedError("folder", table, key=f"[flows.{table}] folder", allowed=[])
    return Path(folder)


def _data_of(given: BlobArguments) -> tuple[bytes, str]:
    if given.text is not None:
        return given.text.encode(), _TEXT
    if given.base64 is not None:
        try:
            return base64.b64decode(given.base64, validate=True), _BINARY
        except (binascii.Error, ValueError) as error:
            raise BlobError("a blob", f"is not Base64: {error}") from None
    return msgspec.json.encode(given.put, order="sorted"), _JSON


def _described(id: str, head: blobs.Head) -> dict[str, Any]:
    return {"id": id, **msgspec.to_builtins(head)}


def _shown(what: str, data: bytes, form: str) -> Any:
    try:
        if form == "json":
            return msgspec.json.decode(data)
        return data.decode("utf-8") if form == "text" else base64.b64encode(data).decode()
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BlobError(what, f"is not {form}: {error}") from None


BUILT_INS = {"blob": Blob()}
