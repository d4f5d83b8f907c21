"""An etcd of one's own, one node or a cluster, for tests and scripts.

Theory
------
* Every node runs in the foreground as a direct child, on free ports of the loopback address and in a folder of its own.
  Nothing outlives the thread that started it, and many clusters can run side by side.
* The program is named by `OUTLIVE_ETCD`, else it is the `etcd` of the PATH.
* `kill` is SIGKILL: what etcd has confirmed is on its disk, and a restart finds it. `pause` is SIGSTOP: the node takes
  connections, because the system does, and answers nothing.
* Beats and elections are twice as fast as etcd's own, so that a lost leader costs a test half a second or so and a
  lease may be as short as one second. On a busy machine that means an election now and then: that is what leases have
  to live with anyway.
"""

from __future__ import annotations

import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outlive.errors import ConfigurationError
from outlive_conformance.servers.launched import Launched, dying_by

__all__ = ["EtcdCluster", "EtcdNotFoundError", "EtcdServer", "EtcdTls", "find_etcd"]

HOST = "127.0.0.1"
START_SECONDS = 30.0
BEAT_MILLISECONDS = 50
ELECTION_MILLISECONDS = 500


class EtcdNotFoundError(ConfigurationError):
    """There is no etcd on this machine that a test could start."""

    def __init__(self) -> None:
        super().__init__(
            "no etcd to start; on Debian or Ubuntu: apt-get install etcd-server, or set OUTLIVE_ETCD to the program"
        )


def find_etcd() -> str | None:
    """The program; None if there is none."""
    return shutil.which(os.environ.get("OUTLIVE_ETCD") or "etcd")


@dataclass(frozen=True, slots=True)
class EtcdTls:
    """Files with which a node proves who it is, and asks its clients to do the same."""

    cert: Path
    key: Path
    ca: Path
    """Signed the certificates of node and clients."""


class EtcdServer(Launched):
    """One node with a folder of its own; `with EtcdServer() as server` starts and removes it."""

    def __init__(self, *, name: str = "node-1", tls: EtcdTls | None = None, settings: Sequence[str] = ()) -> None:
        program = find_etcd()
        if program is None:
            raise EtcdNotFoundError
        self.name = name
        self.port, self.peer_port = _free_ports(2)
        self._program = program
        self._tls = tls
        self._settings = list(settings)
        self._peers = f"{name}=http://{HOST}:{self.peer_port}"
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    # -- Life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the node and wait until it has a leader; ports and data stay the same after the first start."""
        self.launch()
        self.wait_until_ready()

    def launch(self) -> None:
        """Start the node, and do not wait."""
        assert self._process is None, "the node runs already"
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="outlive-etcd-"))
        scheme = "http" if self._tls is None else "https"
        client, peer = f"{scheme}://{HOST}:{self.port}", f"http://{HOST}:{self.peer_port}"
        command = [
            *(self._program, f"--name={self.name}", f"--data-dir={self._folder / 'data'}"),
            *(f"--listen-client-urls={client}", f"--advertise-client-urls={client}"),
            *(f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}"),
            *(f"--initial-cluster={self._peers}", f"--initial-cluster-token={self._peers}"),
            *(f"--heartbeat-interval={BEAT_MILLISECONDS}", f"--election-timeout={ELECTION_MILLISECONDS}"),
            *self._settings,
        ]
        if self._tls is not None:
            command += [f"--cert-file={self._tls.cert}", f"--key-file={self._tls.key}"]
            command += [f"--trusted-ca-file={self._tls.ca}", "--client-cert-auth"]
        environment = {name: value for name, value in os.environ.items() if not name.startswith("ETCD_")}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                cwd=self._folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                preexec_fn=dying_by(signal.SIGKILL),  # noqa: PLW1509 (one system call, which takes no lock)
            )

    def wait_until_ready(self) -> None:
        """Wait until the node knows a leader.

        Raises:
            ConfigurationError: it does not get that far.
        """
        assert self._process is not None, "the node does not run"
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            if self.leader_id:
                return
            time.sleep(0.02)
        log = self.log
        self.kill()
        raise ConfigurationError(f"etcd {self.name} does not start; its log ends with: {log[-2000:]}")

    def kill(self) -> None:
        """Cut the power of this node; twice is fine."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=60)
            self._process = None

    def pause(self) -> None:
        """Let it stand still, as a machine that swaps does, until `resume`."""
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def remove(self) -> None:
        """Kill the node and delete its data; twice is fine."""
        self.kill()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    # -- Use -----------------------------------------------------------------------------------------------

    def url(self, prefix: str = "outlive") -> str:
        """The place of leases on this node, as `WorkerOptions` takes it; with TLS it lacks the client's files."""
        return f"{'etcd' if self._tls is None else 'etcds'}://{HOST}:{self.port}/{prefix}"

    def ask(self, path: str, **body: Any) -> dict[str, Any]:
        """One request to the JSON gateway, such as `ask("kv/range", key=...)`; only without TLS."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=5)
        try:
            connection.request("POST", f"/v3/{path}", json.dumps(body))
            answer = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        assert isinstance(answer, dict)
        return answer

    @property
    def pid(self) -> int:
        """The process id of the node."""
        assert self._process is not None, "the node does not run"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether the node's process lives."""
        return self._process is not None and self._process.poll() is None

    @property
    def log(self) -> str:
        """The log that the node has written."""
        return self._log.read_text("utf-8", "replace") if self._folder is not None and self._log.exists() else ""

    @property
    def leader_id(self) -> str:
        """The member that this node takes for the leader; empty if it knows none, or does not answer.

        With TLS it is enough that the port is open: only its clients may ask.
        """
        try:
            if self._tls is not None:
                with socket.create_connection((HOST, self.port), timeout=1):
                    return "?"
            return str(self.ask("maintenance/status").get("leader", ""))
        except (OSError, http.client.HTTPException, ValueError):
            return ""

    @property
    def is_leader(self) -> bool:
        """Whether this node takes itself for the leader."""
        try:
            status = self.ask("maintenance/status")
        except (OSError, http.client.HTTPException, ValueError):
            return False
        return bool(status.get("leader")) and status["leader"] == status["header"]["member_id"]

    # -- Inside --------------------------------------------------------------------------------------------

    @property
    def _log(self) -> Path:
        assert self._folder is not None
        return self._folder / "etcd.log"

    def join(self, peers: Sequence[EtcdServer]) -> None:
        """Be one of these; before the first start."""
        self._peers = ",".join(f"{peer.name}=http://{HOST}:{peer.peer_port}" for peer in peers)


class EtcdCluster(Launched):
    """Nodes that know each other; `with EtcdCluster(3) as cluster` starts and removes them."""

    def __init__(self, size: int = 3) -> None:
        self.nodes = [EtcdServer(name=f"node-{number}") for number in range(1, size + 1)]
        for node in self.nodes:
            node.join(self.nodes)

    def start(self) -> None:
        """Start the nodes that do not run, and wait until they all have a leader."""
        idle = [node for node in self.nodes if not node.is_running]
        for node in idle:
            node.launch()
        for node in self.nodes:
            node.wait_until_ready()

    def kill(self) -> None:
        """Cut the power of all nodes."""
        for node in self.nodes:
            node.kill()

    def remove(self) -> None:
        """Kill all nodes and delete their data; twice is fine."""
        for node in self.nodes:
            node.remove()

    @property
    def leader(self) -> EtcdServer:
        """The node that leads now; waits for an election if there is none."""
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            for node in self.nodes:
                if node.is_running and node.is_leader:
                    return node
            time.sleep(0.02)
        raise ConfigurationError("the etcd cluster has no leader")

    def url(self, prefix: str = "outlive") -> str:
        """The place of leases on all nodes."""
        return f"etcd://{','.join(f'{HOST}:{node.port}' for node in self.nodes)}/{prefix}"


def _free_ports(count: int) -> list[int]:
    """Ports that are all different, because they are all open at once."""
    probes = [socket.socket() for _ in range(count)]
    try:
        for probe in probes:
            probe.bind((HOST, 0))
        return [probe.getsockname()[1] for probe in probes]
    finally:
        for probe in probes:
            probe.close()
