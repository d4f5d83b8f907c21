"""The Django project in examples/django_shop: an order and its run commit together, and a worker runs it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from outlive.testing.postgres import PostgresServer

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


@pytest.fixture
def database_url(postgres_server: PostgresServer, postgres_database: str) -> str:
    """The address of the database of this module."""
    return postgres_server.store_url(postgres_database)


def test_an_order_and_its_run_are_one_transaction_and_a_worker_of_manage_runs_it(database_url: str) -> None:
    """What is rolled back was never started; what is committed is run by `manage.py outlive worker`."""
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
    asked = [sys.executable, "manage.py", "outlive", "workers", "--json"]
    done = subprocess.run(asked, cwd=PROJECT, env=environment, capture_output=True, text=True, timeout=50)

    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
