"""The Django project in examples/django_shop: an order and its run commit together, and a worker runs it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import outlive
from outlive_conformance.servers.postgres import PostgresServer

ROOT = Path(__file__).parents[2]
PROJECT = ROOT / "examples" / "django_shop"

# Django can be set up once in a process, so what uses it is a program of its own.
REQUESTS = """
import django
from django.core.management import call_command

django.setup()
call_command("migrate", verbosity=0)

from django.test import Client
from outlive.errors import RunNotFoundError
from outlive.integrations import django as durable
from shop.models import Order

client = Client(raise_request_exception=False)
order = client.post("/orders", {"item": "a lamp"}, content_type="application/json").json()["order"]
assert client.post("/orders", {"item": "a chair", "fails": True}, content_type="application/json").status_code == 500
assert Order.objects.count() == 1
assert [run.id for run in durable.engine().list()] == [f"order-{order}"]
print(durable.engine().get(f"order-{order}").result(timeout=30))
print(client.get(f"/orders/{order}").json()["receipt"])
"""


ELSEWHERE = """
import django
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.db import transaction

django.setup()
call_command("migrate", verbosity=0)

from outlive.integrations import django as durable
from shop.models import Order
from shop.workflows import checkout

try:
    with transaction.atomic():
        durable.start(checkout, Order.objects.create(item="an unlit lamp").pk, id="order-1")
except ImproperlyConfigured as error:
    print(error)
assert not Order.objects.filter(item="an unlit lamp")
with transaction.atomic():
    transaction.on_commit(lambda: durable.start(checkout, 1, id="after"))
    durable.engine().start(checkout, 1, id="at-once")
print(*(run.id for run in durable.engine().list()), sep="\\n")
"""


@pytest.fixture
def database_url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """The address of the database of this module."""
    return postgres_server.store_url(postgres_database)


def test_an_order_and_its_run_are_one_transaction_and_a_worker_of_manage_runs_it(database_url: str) -> None:
    """A run that is rolled back with its order never began, and a committed one is run by `manage.py outlive
    worker`."""
    settings = {"DJANGO_SETTINGS_MODULE": "settings", "DATABASE_URL": database_url}
    environment = os.environ | settings | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{PROJECT}"}
    worker = [sys.executable, "manage.py", "outlive", "worker", "--name", "shop"]
    pipe = subprocess.PIPE
    with subprocess.Popen(worker, cwd=PROJECT, env=environment, stdout=pipe, stderr=pipe, text=True) as working:
        try:
            requests = [sys.executable, "-c", REQUESTS]
            done = subprocess.run(requests, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=50)
        finally:
            working.send_signal(signal.SIGTERM)
            said, logged = working.communicate(timeout=20)

    assert (done.stdout, done.returncode) == ("receipt for a lamp\nreceipt for a lamp\n", 0), done.stderr + logged
    assert "ready: worker shop" in said
    assert working.returncode == 0


def test_command_line_of_the_project_knows_its_store(database_url: str) -> None:
    """`manage.py outlive runs ...` needs no address."""
    settings = {"DJANGO_SETTINGS_MODULE": "settings", "DATABASE_URL": database_url}
    environment = os.environ | settings | {"PYTHONPATH": str(ROOT / "src")}
    asked = [sys.executable, "manage.py", "outlive", "workers", "list", "--json"]
    done = subprocess.run(asked, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=50)

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def in_project(
    program: list[str], database_url: str, folder: Path, store: str, *, options: object = None, **more: str
) -> str:
    """What a Python prints whose project has its store elsewhere, or says why it ends."""
    own = {"STORE": store} | ({} if options is None else {"OPTIONS": options})
    (folder / "elsewhere.py").write_text(f"from settings import *\nOUTLIVE = {own!r}\n", "utf-8")
    path = os.pathsep.join(map(str, [ROOT / "src", PROJECT, folder]))
    settings = {"DJANGO_SETTINGS_MODULE": "elsewhere", "DATABASE_URL": database_url, "PYTHONPATH": path}
    ran = [sys.executable, *program]
    done = subprocess.run(
        ran, cwd=PROJECT, env=os.environ | settings | more, capture_output=True, text=True, timeout=50
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.stdout if done.returncode == 0 else done.stderr


@pytest.mark.parametrize("where", ["in another database", "in a file"])
def test_start_in_a_transaction_that_the_store_cannot_take_part_in_is_refused(
    where: str, postgres_server: PostgresServer, database_url: str, tmp_path: Path
) -> None:
    """A start in a transaction of another database than the store's is refused with advice, even if that database has a
    schema of Outlive."""
    store = f"sqlite:{tmp_path / 'shop.db'}"
    if where == "in another database":
        asyncio.run(make_schema(database_url))
        store = postgres_server.store_url(postgres_server.create_database())

    said = in_project(["-c", ELSEWHERE], database_url, tmp_path, store).splitlines()

    assert "is not in the database 'default'" in said[0]
    assert "transaction.on_commit" in said[0]
    assert set(said[1:]) == {"after", "at-once"}


async def make_schema(url: str) -> None:
    """As an engine makes it that has its store there."""
    async with outlive.Engine(url, worker=False):
        pass


def test_commands_of_the_project_use_the_store_of_its_settings_whatever_a_variable_says(
    database_url: str, tmp_path: Path
) -> None:
    """A worker of the project does; a list of its runs from another store would be a wrong answer."""
    asked = ["manage.py", "outlive", "config", "show", "--json"]
    other = {"OUTLIVE_STORE": "sqlite:other.db", "OUTLIVE_NAMESPACE": "other-tenant"}

    said = json.loads(in_project(asked, database_url, tmp_path, "sqlite:shop.db", **other))

    assert "sqlite:shop.db" in json.dumps(said)
    assert "other" not in json.dumps(said)


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (
            {"redcat": ["password"], "url": "memory:"},
            "settings.OUTLIVE: OPTIONS has redcat, url; it may have worker, namespace, ",
        ),
        (["redact"], "settings.OUTLIVE: OPTIONS=['redact'] cannot work"),
        ({"redact": "password"}, "Engine: redact='password' cannot work"),
    ],
)
def test_options_that_an_engine_does_not_take_are_named(
    options: object, fault: str, database_url: str, tmp_path: Path
) -> None:
    """In one line, as other mistakes in the settings: a traceback ended in our code."""
    asked = ["manage.py", "outlive", "worker"]

    said = in_project(asked, database_url, tmp_path, f"sqlite:{tmp_path / 'shop.db'}", options=options)

    assert said.startswith(f"Error: {fault}"), said
    assert said.count("\n") == 1


def test_commands_of_the_project_hide_what_its_settings_redact(database_url: str, tmp_path: Path) -> None:
    """Commands of the project redact the fields of its settings and those of the environment variable."""
    asked, store = ["manage.py", "outlive", "config", "show", "--json"], f"sqlite:{tmp_path / 'shop.db'}"

    said = in_project(asked, database_url, tmp_path, store, options={"redact": ["card"]}, OUTLIVE_REDACT="password")

    assert [it["value"] for it in json.loads(said)["settings"] if it["setting"] == "redact"] == [["card", "password"]]
