"""Payload codecs for `Engine(codecs=[...])`: compress first, encrypt last.

    codecs=[Compression(), Encryption(keys={"2026-11": key}, current="2026-11")]

Any object with a `name`, `encode` and `decode` is one too: see `PayloadCodec`.
"""

from outlive._journal.compression import Compression
from outlive._journal.encryption import Encryption
from outlive._journal.packing import PayloadCodec

__all__ = ["Compression", "Encryption", "PayloadCodec"]
