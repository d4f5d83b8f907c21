"""A worker of remote steps in plain Python: no dependency, one file. Copy it into your project.

    from worker import Worker

    worker = Worker("http://127.0.0.1:7717", key="olv_...", queue="gpu", name="gpu-1")

    @worker.step("resize")
    def resize(image, task):
        task.progress(done=0.5)
        return {"width": 80}

    worker.run()

It claims one task after the other. While a function works, a thread renews the lease of its task. A function that
raises fails the task, and so does one whose output the server refuses; raising `Final` says that another attempt would
not help. A server that is away, or is restarted, is asked again until it is back.
"""

from __future__ import annotations

import http.client
import json
import threading
import time
import traceback
import urllib.error
import urllib.request
from collections.abc import Callable
from typing import Any

WAIT_SECONDS = 20
RETRY_SECONDS = 1.0
TRIES_MAX = 30
NOT_NOW = (429, 502, 503, 504)
"""Answers of a server, or of a proxy before it, that has done nothing yet."""


class Final(Exception):
    """An error that another attempt would meet again."""


class LeaseLostError(Exception):
    """The task is for another worker now, or has ended: what was done of it does not count."""


class RefusedError(Exception):
    """The server does not take a request: sent again, it would be refused again."""


class AwayError(Exception):
    """The server has not answered for a while."""


class Task:
    """What a function is given besides its input."""

    def __init__(self, worker: Worker, claimed: dict[str, Any]) -> None:
        self.id, self.lease, self.input = claimed["id"], claimed["lease"], claimed["input"]
        self.claims = claimed["claims"]
        """How often the task was claimed; more than once: a worker before this one was lost."""
        self.last_progress = claimed["progress"]
        """What that worker said last; None if it said nothing."""
        self.is_cancelled = False
        """Whether the workflow no longer wants the task: stop, and raise anything."""
        self.is_lost = False
        self._worker = worker
        self._over = threading.Event()

    def progress(self, **fields: Any) -> None:
        """Say how far it has come; raises `LeaseLostError` if there is no point in going on."""
        self._beat({"progress": fields})

    def _beat(self, said: dict[str, Any]) -> None:
        try:
            answer = self._worker.post(f"/tasks/{self.id}/heartbeat", self._signed(said))
        except LeaseLostError:
            self.is_lost = True
            raise
        self.is_cancelled = self.is_cancelled or answer["is_cancelled"]

    def _signed(self, said: dict[str, Any]) -> dict[str, Any]:
        return {"lease": self.lease, "lease_seconds": self._worker.lease_seconds, **said}

    def _keep(self) -> None:
        while not self._over.wait(self._worker.lease_seconds / 3):
            try:
                self._beat({})
            except LeaseLostError:
                return
            except (AwayError, RefusedError):
                continue  # The lease lasts a while.

    def work(self, function: Callable[[Any, Task], Any]) -> None:
        """Call the function, and say how it ended."""
        thread = threading.Thread(target=self._keep, daemon=True)
        thread.start()
        try:
            verb, said = "complete", {"output": function(self.input, self)}
        except Exception as error:
            verb, said = "fail", failure_of(error)
        finally:
            self._over.set()
            thread.join()
        if self.is_lost:
            return
        try:
            self._end(verb, said)
        except (RefusedError, TypeError, ValueError) as error:  # It does not fit the step, or is nothing for JSON.
            self._end("fail", failure_of(error))

    def _end(self, verb: str, said: dict[str, Any]) -> None:
        self._worker.post(f"/tasks/{self.id}/{verb}", {"lease": self.lease, **said})


def failure_of(error: Exception) -> dict[str, Any]:
    """What the server should know of an error."""
    return {
        "type": type(error).__name__ or "Exception",
        "message": str(error).encode(errors="replace").decode(),
        "retryable": not isinstance(error, Final),
        "traceback": "".join(traceback.format_exception(error)).encode(errors="replace").decode()[-10_000:],
    }


class Worker:
    """Takes the tasks of a queue."""

    def __init__(self, server: str, *, queue: str, key: str = "", name: str = "", lease_seconds: float = 30) -> None:
        self._server, self._key = server.rstrip("/") + "/api/v1", key
        self._queue, self._name, self.lease_seconds = queue, name, lease_seconds
        self._functions: dict[str, Callable[[Any, Task], Any]] = {}
        self._schemas: dict[str, dict[str, Any]] = {}

    def step(self, name: str, **schemas: Any) -> Callable[[Callable[[Any, Task], Any]], Callable[[Any, Task], Any]]:
        """Let a function do the tasks of this remote step; `input` and `output` are its JSON Schemas, if people and
        flows are to see them."""

        def add(function: Callable[[Any, Task], Any]) -> Callable[[Any, Task], Any]:
            self._functions[name], self._schemas[name] = function, schemas
            return function

        return add

    def run(self, *, most: int | None = None) -> int:
        """Work until it is interrupted, or `most` tasks were claimed; how many were.

        Raises:
            RefusedError: the server takes no claims of this worker.
        """
        count = 0
        while most is None or count < most:
            try:
                task = self.claim()
            except AwayError as error:
                print(error)
                continue
            if task is None:
                continue
            count += 1
            try:
                task[1].work(self._functions[task[0]])
            except (LeaseLostError, AwayError, RefusedError) as error:
                print(f"task {task[1].id}: {error}")
        return count

    def claim(self) -> tuple[str, Task] | None:
        """The next task with the name of its step; None if there was none for a while."""
        wanted = {"queue": self._queue, "steps": self._schemas, "worker": self._name}
        answer = self.post("/tasks/claim", {**wanted, "lease_seconds": self.lease_seconds, "wait": WAIT_SECONDS})
        claimed = answer["task"]
        return None if claimed is None else (claimed["step"], Task(self, claimed))

    def post(self, path: str, body: dict[str, Any]) -> Any:
        """Send a request until it is answered: each of them may be sent again.

        Raises:
            LeaseLostError: the server says that the task is not ours any more.
            RefusedError: the server refuses the request. AwayError: it cannot be reached for long.
        """
        headers = {"content-type": "application/json"}
        if self._key:
            headers["authorization"] = f"Bearer {self._key}"
        data = json.dumps(body).encode()
        for _ in range(TRIES_MAX):
            request = urllib.request.Request(self._server + path, data, headers)
            try:
                with urllib.request.urlopen(request, timeout=WAIT_SECONDS + 30) as answer:
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                with error:  # It holds the connection, which Python 3.14 warns of if it is left open.
                    if error.code == 409:
                        raise LeaseLostError(said_by(error)) from None
                    if error.code not in NOT_NOW:
                        raise RefusedError(f"{error.code}: {said_by(error)}") from None
            except (OSError, http.client.HTTPException):
                pass  # It cannot be reached, or was stopped before it answered.
            time.sleep(RETRY_SECONDS)
        raise AwayError(f"{self._server}{path} was not answered")


def said_by(error: urllib.error.HTTPError) -> str:
    """What a server says of a request that it refuses."""
    try:
        return str(json.load(error)["detail"])
    except (OSError, ValueError, LookupError, TypeError):
        return str(error.reason)
