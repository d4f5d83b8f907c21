"""The type of a form that people fill in: its JSON Schema, and its JSON as a value of that type.

A form is plain JSON, because it is filled in where the code of the workflow is not: in a browser, by a script. So it
is written as the schema says and not in the exact form that `outlive._journal.value` gives to other values. pydantic
models write their own schema and read their own JSON; msgspec does it for everything else.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from outlive._journal.modelled import is_model
from outlive._journal.value import Stored, type_name
from outlive.errors import ConfigurationError, UnreadableError


class FormType:
    """The type of one form."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        try:
            self.schema: dict[str, Any] = schema_of(annotation)
            self.schema_json = msgspec.json.encode(self.schema)
            self._decode = _decoder(annotation)
        except Exception as error:  # A model writes its own schema, and says in its own words that it cannot.
            raise ConfigurationError(
                f"form={type_name(annotation)} cannot be a form: {error}; use a dataclass, a msgspec struct or a "
                f"pydantic model"
            ) from error

    def decode(self, data: Stored, what: str) -> Any:
        """The form as a value of its type.

        Raises:
            UnreadableError: the JSON is not of this type.
        """
        try:
            return self._decode(data)
        except Exception as error:  # Validators are the user's code.
            raise UnreadableError(what, type_name(self._annotation), str(error)) from error


@lru_cache(maxsize=1024)
def form_type(annotation: Any) -> FormType:
    """The form type of an annotation.

    Raises:
        ConfigurationError: nothing describes it as JSON.
    """
    return FormType(annotation)


def schema_of(annotation: Any) -> dict[str, Any]:
    """The JSON Schema of a type."""
    if is_model(annotation):
        return dict(annotation.model_json_schema())
    definitions: dict[str, Any] = {}

    def describe(cls: Any) -> dict[str, Any]:
        if not is_model(cls):
            raise TypeError(f"{type_name(cls)} has no JSON Schema")
        schema = dict(cls.model_json_schema())
        # References count from the top of the whole schema.
        definitions.update(schema.pop("$defs", {}))
        return schema

    schema = msgspec.json.schema(annotation, schema_hook=describe)
    if definitions:
        schema["$defs"] = definitions | schema.get("$defs", {})
    return schema


def encode_form(value: Any) -> bytes:
    """The JSON of a form, given as plain values or as a value of its type."""
    if is_model(type(value)):
        return bytes(_write_model(value))
    return msgspec.json.encode(value, enc_hook=_write_model)


def _write_model(value: Any) -> msgspec.Raw:
    if is_model(type(value)):
        return msgspec.Raw(value.model_dump_json(by_alias=True).encode())
    raise TypeError(f"{type(value).__qualname__} has no JSON; use plain values, or a value of the form's own type")


def _decoder(annotation: Any) -> Any:
    if is_model(annotation):
        return lambda data: annotation.model_validate_json(bytes(data))
    return msgspec.json.Decoder(annotation, dec_hook=_read_model).decode


def _read_model(cls: Any, plain: Any) -> Any:
    if is_model(cls):
        return cls.model_validate_json(msgspec.json.encode(plain))
    raise TypeError(f"{type_name(cls)} is no part of a form")
