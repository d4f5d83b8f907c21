"""How values are stored: payload codecs for `Engine(codecs=[...])`, and converters for classes of your own.

    codecs=[Compression(), Encryption(keys={"2026-11": key}, current="2026-11")]

Compress first, encrypt last. Any object with a `name`, `encode` and `decode` is a payload codec: see `PayloadCodec`.
"""

from outlive._kernel.journal.compression import Compression
from outlive._kernel.journal.encryption import Encryption
from outlive._kernel.journal.packing import PayloadCodec
from outlive._kernel.journal.value import register

__all__ = ["Compression", "Encryption", "PayloadCodec", "register"]
