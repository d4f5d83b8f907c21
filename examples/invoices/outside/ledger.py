"""The ledger of a service: a file of lines that survives kill -9, and a server that asks it before it does anything."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

Answer = tuple[int, dict[str, Any]]


class Ledger:
    """What a service has done, in order. A line is written before the service answers."""

    def __init__(self, path: Path) -> None:
        self.lock = threading.RLock()
        whole, _, torn = path.read_text("utf-8").rpartition("\n") if path.exists() else ("", "", "")
        self.entries: list[dict[str, Any]] = [json.loads(line) for line in whole.splitlines()]
        self._file = path.open("a", encoding="utf-8")
        if torn:  # It was killed while it wrote, and so had not answered.
            self._file.truncate(len(whole.encode()) + 1 if whole else 0)

    def write(self, **entry: Any) -> None:
        """Add a line."""
        with self.lock:
            self.entries.append(entry)
            self._file.write(json.dumps(entry) + "\n")
            self._file.flush()


class Server(ThreadingHTTPServer):
    """Answers requests with JSON bodies. Each answer is that of `answer(path, key, body)`."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, answer: Callable[[str, str, dict[str, Any]], Answer]) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, said = answer(self.path, self.headers.get("idempotency-key", ""), body)
                content = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *args: Any) -> None:
                """Nothing: the ledger has it."""

        super().__init__(("127.0.0.1", port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed meanwhile is nothing to report."""
