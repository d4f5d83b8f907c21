"""An etcd that wants to know who asks."""

from base64 import b64encode
from collections.abc import Iterator

import pytest

from outlive._kernel.lease.etcd.keys import after_all
from outlive.errors import StoreUnavailableError
from outlive_conformance.servers.etcd import EtcdServer
from tests.lease.conftest import Opener
from tests.lease.fleet import Bell, enlist, lost, renew

PASSWORD = "s3cret"


def text(value: str) -> str:
    """A key as the gateway takes it."""
    return b64encode(value.encode()).decode()


@pytest.fixture(scope="module")
def server(etcd_program: None) -> Iterator[EtcdServer]:
    """A node where `worker` may touch the prefix `outlive` and nothing else; its tokens are over after two seconds."""
    with EtcdServer(settings=["--auth-token-ttl=2"]) as server:
        server.ask("auth/user/add", name="root", password=PASSWORD)
        server.ask("auth/user/grant", user="root", role="root")
        server.ask("auth/user/add", name="worker", password=PASSWORD)
        server.ask("auth/role/add", name="worker")
        allowed = {"permType": "READWRITE", "key": text("outlive/"), "range_end": text(after_all(b"outlive/").decode())}
        server.ask("auth/role/grant", name="worker", perm=allowed)
        server.ask("auth/user/grant", user="worker", role="worker")
        server.ask("auth/enable")
        yield server


def url(server: EtcdServer, user: str, prefix: str = "outlive") -> str:
    """The address with a user."""
    return server.url(prefix).replace("://", f"://{user}@")


async def test_user_with_the_prefix_does_everything(server: EtcdServer, open_leases: Opener) -> None:
    """With nothing but its password."""
    leases = await open_leases(url(server, f"worker:{PASSWORD}"))
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


@pytest.mark.parametrize(
    ("user", "prefix", "reason"),
    [
        ("worker:wr0ng", "outlive", "check user and password"),
        ("stranger:wr0ng", "outlive", "check user and password"),
        (f"worker:{PASSWORD}", "elsewhere", "needs to read and write the keys under the prefix"),
    ],
)
async def test_refusal_says_what_to_do_and_no_password(
    server: EtcdServer, open_leases: Opener, user: str, prefix: str, reason: str
) -> None:
    """A wrong password, an unknown user, a prefix that is not theirs."""
    with pytest.raises(StoreUnavailableError, match=reason) as refused:
        await open_leases(url(server, user, prefix))

    assert user.partition(":")[2] not in f"{refused.value!r}{vars(refused.value)}"


async def test_address_without_a_user_is_refused_with_what_to_do(server: EtcdServer, open_leases: Opener) -> None:
    """It shows how a user is written."""
    with pytest.raises(StoreUnavailableError, match="it wants a user: write etcd://user:password@host"):
        await open_leases(server.url())


async def test_token_that_is_over_is_renewed(server: EtcdServer, open_leases: Opener) -> None:
    """A restarted node knows none of the tokens that it has given."""
    leases = await open_leases(url(server, f"worker:{PASSWORD}"))
    await enlist(leases, "worker-a")
    beat = leases.open_beat("worker-a")
    assert await renew(beat)
    bell = Bell()
    leases.watch(bell.ring)
    await bell.wait()
    server.kill()
    server.start()

    await enlist(leases, "worker-b")

    assert await lost(leases) == []
    assert await renew(beat)
    await bell.wait()
    await leases.end_session("worker-a")
    await leases.end_session("worker-b")
    beat.close()


async def test_a_user_is_accepted_where_authentication_is_off(etcd_url: str, open_leases: Opener) -> None:
    """An address with a user works on an etcd without authentication, which may be enabled later."""
    leases = await open_leases(etcd_url.replace("://", f"://worker:{PASSWORD}@"))

    await enlist(leases, "worker-a")

    assert await lost(leases) == []
