"""Who this is for: a header that the web request sets, and every step of the run and of its children sees.

Headers are journaled with the run and inherited by what it starts. The middleware moves them into a context variable:
the code of the steps, and the libraries that it uses, find the tenant where they find it in the web application.
"""

import asyncio
import contextvars
from collections.abc import Awaitable, Callable
from typing import Any

import outlive

tenant = contextvars.ContextVar("tenant", default="none")


class TenantContext(outlive.middleware.Middleware):
    async def on_start(self, start: outlive.middleware.StartCall, call_next: Callable[[], Awaitable[Any]]) -> Any:
        start.headers.setdefault("tenant", tenant.get())
        return await call_next()

    async def on_step(self, step: outlive.types.StepContext, call_next: Callable[[], Awaitable[Any]]) -> Any:
        tenant.set(step.headers["tenant"])
        return await call_next()


@outlive.step(name="patterns.charge_tenant")
async def charge(cents: int) -> str:
    return f"{tenant.get()} is charged {cents} cents"


@outlive.workflow(name="patterns.invoice")
async def invoice(cents: int) -> str:
    return await charge(cents)


@outlive.workflow(name="patterns.tenant_order")
async def order(cents: int) -> str:
    return await invoice(cents)  # A child: it inherits the headers.


async def main() -> None:
    async with outlive.Engine("memory:", middleware=[TenantContext()]) as engine:
        for name in ("north", "south"):
            tenant.set(name)  # As a web framework does it for each request.
            print(await (await engine.start(order, 500)).result())


if __name__ == "__main__":
    asyncio.run(main())

# Prints:
# north is charged 500 cents
# south is charged 500 cents
