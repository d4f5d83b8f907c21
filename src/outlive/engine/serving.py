"""An engine inside a program that serves HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from outlive.client.view import View

if TYPE_CHECKING:
    from types import TracebackType

    from outlive.client.client import Client

API = "outlive.http.app"
"""Where the API is. It stands above the engine and imports it, so that it is named here and not imported."""
DASHBOARD = "outlive.dashboard.files"
"""Where the dashboard is; it stands above the API."""


class Served:
    """The part of an engine for a program that serves HTTP."""

    if TYPE_CHECKING:

        @property
        def _verbs(self) -> Client: ...

        async def __aenter__(self) -> Self: ...

        async def __aexit__(
            self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
        ) -> None: ...

    def asgi(self, *, dashboard: bool = True, **options: Any) -> Any:
        """The HTTP API of this engine and its dashboard, as an ASGI app: `app.mount("/outlive", engine.asgi())`.

        Args:
            dashboard: whether browsers get the dashboard at the root of the app.
            options: as `outlive.http.Api` takes them: `auth`, `hosts`, `origins`, `limits`, `webhooks`.
        """
        pages = import_module(DASHBOARD).pages() if dashboard else None
        return import_module(API).Api(self, pages=pages, **options)

    @asynccontextmanager
    async def lifespan(self, app: object) -> AsyncIterator[None]:
        """Enter this engine while an application lives: `FastAPI(lifespan=engine.lifespan)`."""
        async with self:
            yield

    @property
    def view(self) -> View:
        """Runs as people may see them: plain JSON, without what `redact` hides. For programs that show runs."""
        return View(self._verbs)
