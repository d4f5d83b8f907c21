"""Workers can be killed over HTTP in the demo, and on no other server."""

from __future__ import annotations

from outlive.dashboard.files import pages
from outlive.demo.site import KILL, STATE, demo_pages
from outlive.http.operation import OPERATIONS
from outlive.http.routing import Routes


def test_only_the_server_of_the_demo_can_kill() -> None:
    """The table of operations has no such thing, and neither has the dashboard of other servers."""
    routes = Routes(OPERATIONS.values())

    assert [None, None] == [routes.find(path.strip("/").split("/"), "POST") for path in (STATE, KILL)]
    assert not [path for path, source in pages().sources.items() if b"kill -9" in source]


def test_the_dashboard_of_the_demo_has_one_view_more() -> None:
    """The dashboard of the demo has one view more than that of other servers, and all the others."""
    own, others = demo_pages(), pages()

    assert {"views/demo.js"} == own.sources.keys() - others.sources.keys()
    assert b"module: './views/demo.js'" in own.sources["views.js"]
    assert own.version != others.version
