"""What processes use, looked at from outside, and how large the store is."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import msgspec

_THREADS = re.compile(r"Threads:\s+(\d+)")
_RESIDENT = re.compile(r"VmRSS:\s+(\d+)")
_SOCKET = re.compile(r"socket:\[(\d+)\]")
ESTABLISHED, LISTENS = "01", "0A"
SIZE = """
    SELECT
        sum(pg_total_relation_size(oid)) FILTER (WHERE relnamespace = 'outlive'::regnamespace),
        (SELECT count(*) FROM outlive.runs),
        (SELECT count(*) FROM pg_stat_activity WHERE datname = current_database())
    FROM pg_class WHERE relkind = 'r'
"""


class Sample(msgspec.Struct, frozen=True):
    """One process at one moment."""

    at: float
    role: str
    pid: int
    rss_mb: float
    fds: int
    threads: int
    connections: int
    """To the server of the store."""
    cpu_seconds: float


class StoreSize(msgspec.Struct, frozen=True):
    """The store at one moment."""

    at: float
    mb: float
    runs: int
    connections: int
    """Of all processes, those of this program too."""


def look_at(role: str, pid: int, *, sockets: set[str]) -> Sample | None:
    """What a process uses; None if it is gone. `sockets` are those that are connected to the server of the store."""
    process = Path(f"/proc/{pid}")
    try:
        status = (process / "status").read_text("ascii", "replace")
        links = [str(entry.readlink()) for entry in (process / "fd").iterdir()]
        times = (process / "stat").read_text("ascii", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    resident, threads = _RESIDENT.search(status), _THREADS.search(status)
    if resident is None or threads is None:
        return None  # It has ended, and its parent has not waited for it yet.
    return Sample(
        at=time.time(),
        role=role,
        pid=pid,
        rss_mb=int(resident[1]) / 1024,
        fds=len(links),
        threads=int(threads[1]),
        connections=sum(1 for link in links if (it := _SOCKET.match(link)) is not None and it[1] in sockets),
        cpu_seconds=(int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK"),
    )


def port_of(pid: int) -> int | None:
    """The port on which a process listens; None if it does not yet, or is gone."""
    try:
        links = [str(entry.readlink()) for entry in Path(f"/proc/{pid}/fd").iterdir()]
    except OSError:
        return None
    own = {found[1] for link in links if (found := _SOCKET.match(link)) is not None}
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if fields[3] == LISTENS and fields[9] in own:
            return int(fields[1].rpartition(":")[2], 16)
    return None


def sockets_to(port: int) -> set[str]:
    """The inodes of the sockets that are connected to a port."""
    wanted, found = f":{port:04X}", set()
    for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]:
        fields = line.split()
        if fields[2].endswith(wanted) and fields[3] == ESTABLISHED:
            found.add(fields[9])
    return found
