"""A program whose worker traces into a file, and is killed in the middle of its second step."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import outlive

FOLDER = Path(os.environ.get("SHOP", "."))


@outlive.step(name="traced.reserve")
async def reserve(order: str) -> str:
    """Ends well in the first worker."""
    return f"reserved {order}"


@outlive.step(name="traced.charge")
def charge(order: str) -> str:
    """Kills the first worker that comes here."""
    killed = FOLDER / "killed"
    if not killed.exists():
        killed.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    with trace.get_tracer("bank").start_as_current_span("POST /charges"):
        return f"charged {order}"


@outlive.workflow(name="traced.pay")
async def pay(order: str) -> str:
    """A child."""
    return await charge(order)


@outlive.workflow(name="traced.order")
async def buy(order: str) -> str:
    """Two steps, the second one in a child."""
    return f"{await reserve(order)}, {await pay(order)}"


def trace_to_file() -> None:
    """As the set-up of a program does it."""
    file = (FOLDER / f"spans-{os.getpid()}").open("a", encoding="utf-8", buffering=1)
    exporter = ConsoleSpanExporter(out=file, formatter=lambda span: f"{span.to_json(indent=None)}\n")
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)


if "SHOP" in os.environ:
    trace_to_file()
