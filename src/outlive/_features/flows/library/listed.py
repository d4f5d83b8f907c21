"""The steps and workflows that live workers run: a document is checked with them where no code is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from outlive._kernel.client.client import Client
from outlive._kernel.client.workers import Workers

if TYPE_CHECKING:
    from outlive._features.flows.document.known_names import Listed


class ListedNames:
    """The names that a document may use in one store."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def read(self) -> Listed:
        """The names now."""
        from outlive._features.flows.document.known_names import Listed

        workflows = {it.name for it in await self._client.definitions.list()}
        return Listed(await Workers(self._client.access).steps(), workflows)
