"""A model that needs no network: a small server that speaks OpenAI's Chat Completions, with streaming, on loopback.

It plays the model of the agents in this folder. Asked to clean up, it calls the tool `list_backups`, then
`delete_backup`, and then says what it has done. The examples start one if OPENAI_BASE_URL names no other.

    with ModelServer() as server:
        os.environ["OPENAI_BASE_URL"] = server.url
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

INPUT_TOKENS, OUTPUT_TOKENS = 100, 20
"""Of every request."""


class ModelServer:
    """Answers on a free port of loopback until it is left. `requests` has every body that came in."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        requests = self.requests

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append(body)
                stream = body.get("stream", False)
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if stream else "application/json")
                self.end_headers()
                if not stream:
                    self.wfile.write(json.dumps(_completion(body)).encode())
                    return
                for chunk in _chunks(body):
                    self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())
                    self.wfile.flush()
                self.wfile.write(b"data: [DONE]\n\n")

            def log_message(self, *args: Any) -> None:
                """Nothing: the example prints what matters."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> ModelServer:
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _reply(body: dict[str, Any]) -> tuple[str, dict[str, Any] | None]:
    """What the model says, and the tool that it calls."""
    results = [str(message["content"]) for message in body["messages"] if message["role"] == "tool"]
    if not results:
        return "I will look. ", {"name": "list_backups", "arguments": "{}"}
    if len(results) == 1:
        return "", {"name": "delete_backup", "arguments": json.dumps({"name": "2019.tar"})}
    return ("Deleted 2019.tar." if "deleted" in results[-1] else "Nothing was deleted."), None


def _tool_call(body: dict[str, Any], function: dict[str, Any]) -> dict[str, Any]:
    return {"index": 0, "id": f"call_{len(body['messages'])}", "type": "function", "function": function}


def _usage() -> dict[str, int]:
    return {
        "prompt_tokens": INPUT_TOKENS,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": INPUT_TOKENS + OUTPUT_TOKENS,
    }


def _completion(body: dict[str, Any]) -> dict[str, Any]:
    text, function = _reply(body)
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    if function is not None:
        message["tool_calls"] = [_tool_call(body, function)]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if function else "stop"}
    return {**_head(body, "chat.completion"), "choices": [choice], "usage": _usage()}


def _chunks(body: dict[str, Any]) -> Iterator[dict[str, Any]]:
    text, function = _reply(body)
    head = _head(body, "chat.completion.chunk")
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": f"{word} "} for word in text.split()]
    if function is not None:
        deltas.append({"role": "assistant", "tool_calls": [_tool_call(body, function)]})
    for delta in deltas:
        yield {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls" if function else "stop"}]}
    yield {**head, "choices": [], "usage": _usage()}


def _head(body: dict[str, Any], kind: str) -> dict[str, Any]:
    return {"id": f"answer-{len(body['messages'])}", "object": kind, "created": 0, "model": body["model"]}
