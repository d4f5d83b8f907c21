"""The type of a form that people fill in: its JSON Schema, and its JSON as a value of that type.

A form is in the public form, because it is filled in where the code of the workflow is not: in a browser, by a script.
So it is written as the schema says and not in the exact form that `_kernel.journal.value` gives to other values.
pydantic describes models, and what only it can tell apart; msgspec describes everything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from outlive._kernel.journal.modelled import REFERENCE, is_model, schema_of_model
from outlive._kernel.journal.readable import public_custom
from outlive._kernel.journal.value import Stored, codec_for, converter_of, is_adapted, read_custom, type_name
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


def schema_of(annotation: Any, *, unknown: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON Schema of the public form of a type, with the definitions that it refers to.

    Args:
        unknown: the schema of a class that nothing describes.

    Raises:
        TypeError: nothing describes it.
    """
    definitions: dict[str, Any] = {}

    def describe(cls: Any) -> dict[str, Any]:
        if is_model(cls):
            schema = schema_of_model(cls)
        elif (converter := converter_of(cls)) is not None:
            schema = schema_of(converter.to, unknown=unknown)
        elif unknown is not None:
            schema = dict(unknown)
        else:
            raise TypeError(f"{type_name(cls)} has no JSON Schema")
        # References count from the top of the whole schema.
        definitions.update(schema.pop("$defs", {}))
        return schema

    if not is_model(annotation) and is_adapted(annotation):
        return schema_of_model(annotation)
    (schema,), own = msgspec.json.schema_components([annotation], schema_hook=describe, ref_template=REFERENCE)
    definitions |= own
    whole = {**schema, "$defs": definitions} if definitions else schema
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(whole))  # A default may be a tuple.
    return found


def encode_form(value: Any) -> bytes:
    """The JSON of a form, given as plain values or as a value of its type."""
    return msgspec.json.encode(value, enc_hook=public_custom)


def _decoder(annotation: Any) -> Any:
    if is_adapted(annotation):
        codec = codec_for(annotation)
        return lambda data: codec.decode(data, "a form")
    return msgspec.json.Decoder(annotation, dec_hook=read_custom).decode
