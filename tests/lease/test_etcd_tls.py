"""etcd behind TLS, which wants to see its clients' certificates too."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from outlive.errors import StoreUnavailableError
from outlive_conformance.servers.etcd import EtcdServer, EtcdTls
from tests.lease.certificates import Authority
from tests.lease.conftest import Opener
from tests.lease.fleet import Bell, enlist, lost, renew


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Whom both sides trust."""
    return Authority(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def server(etcd_program: None, authority: Authority) -> Iterator[EtcdServer]:
    """A node that speaks nothing but TLS."""
    cert, key = authority.issue("server")
    with EtcdServer(tls=EtcdTls(cert=cert, key=key, ca=authority.ca)) as server:
        yield server


async def test_leases_work_over_tls(server: EtcdServer, authority: Authority, open_leases: Opener) -> None:
    """Sessions, beats, and the watch, which is closed while it waits."""
    cert, key = authority.issue("worker")
    leases = await open_leases(f"{server.url()}?ca={authority.ca}&cert={cert}&key={key}")
    bell = Bell()
    leases.watch(bell.ring)
    await bell.wait()
    await enlist(leases, "worker-a")
    beat = leases.open_beat("worker-a")

    assert await renew(beat)

    assert await lost(leases) == []
    await leases.end_session("worker-a")
    await bell.wait()
    assert not await renew(beat)
    beat.close()


async def test_client_without_a_certificate_is_not_let_in(
    server: EtcdServer, authority: Authority, open_leases: Opener
) -> None:
    """etcd ends the connection, and the error says what it said."""
    with pytest.raises(StoreUnavailableError, match=r"certificate|reset|ended the connection|EOF"):
        await open_leases(f"{server.url()}?ca={authority.ca}")


async def test_server_with_an_unknown_certificate_is_not_talked_to(
    server: EtcdServer, authority: Authority, open_leases: Opener, tmp_path: Path
) -> None:
    """A certificate that another authority has signed is refused."""
    other = Authority(tmp_path, name="other")
    cert, key = authority.issue("worker")

    with pytest.raises(StoreUnavailableError, match="certificate verify failed"):
        await open_leases(f"{server.url()}?ca={other.ca}&cert={cert}&key={key}")


async def test_address_without_tls_is_refused_by_a_server_with_it(server: EtcdServer, open_leases: Opener) -> None:
    """The error says how TLS is written."""
    with pytest.raises(StoreUnavailableError, match="one that speaks TLS does; then write etcds://"):
        await open_leases(server.url().replace("etcds", "etcd"))
