"""The web application: it takes orders, the bank's webhooks and decisions, and shows how things go.

    uvicorn invoices.web:app --timeout-graceful-shutdown 2

It runs no workflow itself; workers do (`outlive worker invoices.workflows`).
"""

import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Header, HTTPException, Request
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse
from pydantic import BaseModel

import outlive
from invoices import settings
from invoices.checkout import checkout
from invoices.models import Order, Row, Settlement
from invoices.workflows import import_row, imports
from outlive.http.signature import Problem, check_signature

engine = outlive.Engine.configured(worker=False)  # OUTLIVE_STORE says where

app = FastAPI(lifespan=engine.lifespan)
app.mount("/outlive", engine.asgi())  # the dashboard, for the people who operate this


# -- Orders ----------------------------------------------------------------------------------------------------


@app.put("/invoices/{number}", status_code=202)
async def place(number: str, order: Order) -> dict[str, str]:
    """Take an order. It is durable when this returns, and safe to repeat."""
    run = await engine.start(checkout, number, order, id=f"invoice-{number}", key=order.customer)
    return {"run": run.id}


@app.get("/invoices/{number}")
async def look(number: str) -> dict[str, Any]:
    """How an order is."""
    run = engine.get(f"invoice-{number}")
    status = await run.status()
    if status == "succeeded":
        return {"status": status, "receipt": await run.result()}
    return {"status": status, "why": await run.why()}


@app.delete("/invoices/{number}", status_code=202)
async def cancel(number: str) -> None:
    """The customer does not want it any more. An invoice that is paid stays paid."""
    await engine.cancel(f"invoice-{number}", reason="the customer has cancelled")


@app.get("/invoices/{number}/progress")
async def follow(number: str) -> StreamingResponse:
    """What the checkout shows of itself, live, as server-sent events."""
    run = engine.get(f"invoice-{number}")
    await run.status()  # 404, before the answer begins

    async def events() -> AsyncIterator[str]:
        with suppress(outlive.errors.StoreUnavailableError):  # The answer ends, and the browser connects again.
            async for shown in run.watch():
                yield f"data: {json.dumps(shown)}\n\n"
            yield "event: end\ndata: {}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


# -- The bank --------------------------------------------------------------------------------------------------


@app.post("/hooks/bank", status_code=202)
async def hear_from_bank(request: Request) -> dict[str, int]:
    """A payment is settled. The bank sends this early, late and twice: one event, and so one run, for each id."""
    body = await request.body()
    try:
        event_id = check_signature(settings.HOOK_KEY, request.headers, body, now_seconds=time.time())
    except Problem as error:
        raise HTTPException(error.status, str(error)) from error
    settlement = Settlement(**json.loads(body))
    sent = await engine.events.send("payment.settled", settlement, id=event_id, source="bank")
    if not sent.runs:  # No worker has said yet that it wants such events: the bank shall send it again.
        raise HTTPException(503, "not yet")
    return {"runs": len(sent.runs)}


# -- People who decide -----------------------------------------------------------------------------------------


class Decision(BaseModel):
    """What a person says to a request."""

    request: str
    by: str
    approved: bool
    note: str = ""


@app.get("/approvals")
async def list_approvals() -> list[dict[str, Any]]:
    """What the people of finance are asked."""
    page = await engine.approvals.list(assignee="finance")
    return [
        {"run": it.run_id, "name": it.name, "request": it.id, "title": it.title, "has_form": it.schema is not None}
        for it in page
    ]


@app.post("/approvals/{run_id}/{name}")
async def decide(run_id: str, name: str, decision: Decision) -> dict[str, Any]:
    """The decision that counts: the first one."""
    verb = engine.approvals.approve if decision.approved else engine.approvals.reject
    form = {"note": decision.note} if name == "credit" and decision.approved else None
    first = await verb(run_id, name, by=decision.by, request=decision.request, form=form)
    return {"approved": first.approved, "by": first.by, "is_first": first.is_first}


# -- Old invoices ----------------------------------------------------------------------------------------------


@app.put("/imports/{file}", status_code=202)
async def take_file(file: str, cents: list[int]) -> dict[str, str]:
    """Import a file of old invoices: a batch, of which each row is durable on its own."""
    rows = (Row(file, line, each) for line, each in enumerate(cents))
    batch = await engine.start_batch(import_row, rows, concurrency=8, id=f"import-{file}", queue=imports)
    return {"batch": batch.id}


@app.get("/imports/{file}")
async def look_at_file(file: str) -> dict[str, Any]:
    """How far an import is."""
    return {"status": await engine.batches.get(f"import-{file}").status()}


# -- Letters ---------------------------------------------------------------------------------------------------


@app.put("/letters/{number}", status_code=202)
async def write(number: str) -> dict[str, str]:
    """Let the agent write a letter about an invoice. Its code is in other processes: it is started by its name."""
    run = await engine.start("write_letter", {"number": number}, id=f"letter-{number}")
    return {"run": run.id}


@app.get("/letters/{number}/text")
async def read_letter(number: str, last_event_id: int = Header(default=0)) -> StreamingResponse:
    """The words of the agent as it writes them. A reader that was cut off goes on where it was."""
    run = engine.get(f"letter-{number}")
    await run.status()

    async def events() -> AsyncIterator[str]:
        with suppress(outlive.errors.StoreUnavailableError):
            async for item in run.stream("tokens", str, after=last_event_id, positions=True):
                yield f"id: {item.position}\ndata: {json.dumps(item.value)}\n\n"
            yield "event: end\ndata: {}\n\n"

    return StreamingResponse(events(), media_type="text/event-stream")


# -- The page, and what goes wrong -----------------------------------------------------------------------------


@app.get("/")
async def page() -> FileResponse:
    """A page without a build."""
    return FileResponse(Path(__file__).parent / "static" / "index.html")


@app.get("/ping")
async def ping() -> str:
    """The process answers."""
    return "pong"


STATUS_OF = {
    outlive.errors.NotFoundError: 404,
    outlive.errors.ConflictError: 409,
    outlive.errors.StoreUnavailableError: 503,
}
STATUS_OF_CODE = {"unknown_workflow": 503}  # its workers have just been started for the first time


@app.exception_handler(outlive.errors.OutliveError)
async def explain(request: Request, error: outlive.errors.OutliveError) -> JSONResponse:
    """An answer that says what the engine says."""
    by_class = next((status for kind, status in STATUS_OF.items() if isinstance(error, kind)), 500)
    return JSONResponse({"error": str(error)}, STATUS_OF_CODE.get(error.code, by_class))
