"""The launcher of etcd: what was confirmed survives a kill, and a machine without etcd gets an error that says what to
do."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from outlive_conformance.servers.etcd import EtcdNotFoundError, EtcdServer, find_etcd

KEY = b64encode(b"fact").decode()


@pytest.fixture
def etcd(etcd_program: None) -> EtcdServer:
    """A node that is not started yet."""
    return EtcdServer()


def test_a_confirmed_value_is_there_after_a_kill(etcd: EtcdServer) -> None:
    """A value that etcd confirmed is there after a kill and a start on the same port."""
    with etcd:
        etcd.ask("kv/put", key=KEY, value=KEY)
        pid, port = etcd.pid, etcd.port

        etcd.kill()
        etcd.kill()

        assert not etcd.is_running
        assert not Path(f"/proc/{pid}").exists()
        etcd.start()
        assert etcd.port == port
        assert etcd.ask("kv/range", key=KEY)["kvs"][0]["value"] == KEY
        assert etcd.is_leader
    assert not etcd.is_running
    assert etcd.log == ""


def test_node_that_does_not_start_shows_its_log(etcd: EtcdServer) -> None:
    """A setting that it does not know, for example."""
    broken = EtcdServer(settings=["--no-such-setting"])

    with pytest.raises(ValueError, match=r"(?s)etcd node-1 does not start; its log ends with: .*no-such-setting"):
        broken.start()

    broken.remove()


def test_machine_without_etcd_gets_an_error_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    """How to install it, or how to name it."""
    monkeypatch.setenv("OUTLIVE_ETCD", "/there/is/no/such/program")

    assert find_etcd() is None
    with pytest.raises(EtcdNotFoundError, match="apt-get install etcd-server, or set OUTLIVE_ETCD"):
        EtcdServer()
