"""The files in deploy/: every command in them is one that we have, with options that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from outlive.cli import main
from outlive.cli.worker import GRACE_SECONDS
from outlive.http.server import PORT
from outlive.metrics.table import METRICS

DEPLOY = Path(__file__).parents[2] / "deploy"


def commands() -> Iterator[tuple[str, list[str]]]:
    """Where each stands, and its words."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    for name, service in compose["services"].items():
        if "command" in service:
            yield f"compose.yaml: {name}", service["command"]
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / "outlive.yaml").read_text("utf-8")):
        if document["kind"] == "Deployment":
            for container in document["spec"]["template"]["spec"]["containers"]:
                yield f"outlive.yaml: {document['metadata']['name']}", container["args"]
    for unit in sorted((DEPLOY / "systemd").glob("*.service")):
        (line,) = re.findall(r"^ExecStart=\S*/outlive (.*)$", unit.read_text("utf-8"), flags=re.MULTILINE)
        yield unit.name, line.split()


@pytest.mark.parametrize(("where", "words"), [pytest.param(*found, id=found[0]) for found in commands()])
def test_every_command_of_a_deployment_is_one_that_we_have(
    where: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed as the command line parses it, and not run."""
    monkeypatch.setenv("OUTLIVE_STORE", "postgresql://stranger@localhost/nothing")
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, where
    context = command.make_context(words[0], list(words[1:]))
    assert not context.args


def test_the_image_of_the_compose_file_is_built_where_its_dockerfile_is() -> None:
    """Docker Compose reads paths from the folder of the compose file, wherever it is called."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    unset = re.compile(r"\$\{\w+:-(.*)\}")
    for name in ("worker", "server"):
        build = compose["services"][name]["build"]
        context, dockerfile = (unset.sub(r"\1", build[key]) for key in ("context", "dockerfile"))
        assert (DEPLOY / context / dockerfile).is_file()
        assert (DEPLOY / context / f"{dockerfile}.dockerignore").is_file()


def test_the_autoscaler_reads_a_metric_that_the_adapter_makes_of_one_of_ours() -> None:
    """Every worker says how many runs of the whole store wait: a sum over workers would grow with their number."""
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "outlive.yaml").read_text("utf-8"))
    (scaler,) = [document for document in documents if document["kind"] == "HorizontalPodAutoscaler"]
    adapter = yaml.safe_load((DEPLOY / "kubernetes" / "prometheus-adapter.yaml").read_text("utf-8"))
    (rule,) = adapter["rules"]["external"]

    assert [it["external"]["metric"]["name"] for it in scaler["spec"]["metrics"]] == [rule["name"]["as"]]
    assert rule["seriesQuery"] in {metric.name for metric in METRICS}
    assert rule["metricsQuery"] == f"sum(max by (queue) ({rule['seriesQuery']}))"


def seconds(text: str) -> float:
    """A span as Docker, Kubernetes and systemd write it."""
    return float(str(text).removesuffix("s"))


def grace_in(words: list[str]) -> float:
    """How long a worker lets steps finish."""
    command = main.get_command(click.Context(main), "worker")
    assert command is not None
    given = command.make_context("worker", list(words[1:])).params["grace_seconds"]
    return GRACE_SECONDS if given is None else float(given)


def test_every_platform_waits_longer_than_a_worker_takes_to_drain(monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/guides/deploying.md: for the grace and 10 seconds more, so that no worker is killed while it drains."""
    monkeypatch.setenv("OUTLIVE_STORE", "postgresql://shop@localhost/shop")
    words = dict(commands())
    worker = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]["worker"]
    waits = {"compose.yaml: worker": seconds(worker["stop_grace_period"])}
    for document in yaml.safe_load_all((DEPLOY / "kubernetes" / "outlive.yaml").read_text("utf-8")):
        if document["metadata"]["name"] == "outlive-worker" and document["kind"] == "Deployment":
            pod = document["spec"]["template"]["spec"]
            _, pause = pod["containers"][0]["lifecycle"]["preStop"]["exec"]["command"]
            waits["outlive.yaml: outlive-worker"] = pod["terminationGracePeriodSeconds"] - seconds(pause)
    unit = (DEPLOY / "systemd" / "outlive-worker@.service").read_text("utf-8")
    (limit,) = re.findall(r"^TimeoutStopSec=(.*)$", unit, flags=re.MULTILINE)
    waits["outlive-worker@.service"] = seconds(limit)

    assert len(waits) == 3
    assert all(wait >= grace_in(words[where]) + 10 for where, wait in waits.items())


def test_every_probe_asks_a_port_that_its_process_listens_on() -> None:
    """A probe that cannot be answered would have its container restarted for ever."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    ports = {"worker": compose["worker"]["command"][-1], "server": str(PORT)}
    assert compose["worker"]["command"][-2] == "--metrics-port"
    for name, port in ports.items():
        assert f"http://127.0.0.1:{port}/health/ready" in compose[name]["healthcheck"]["test"][-1]


def test_secrets_and_stores_of_the_machine_stay_out_of_the_image() -> None:
    """`COPY . .` takes everything that this file does not name."""
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text("utf-8").splitlines()

    assert {"**/.git", "**/.venv*", "**/.env*", "**/*.db", "**/*.db-*"} <= set(ignored)


def test_a_unit_of_systemd_lets_the_driver_look_for_a_certificate() -> None:
    """asyncpg asks for one in the home, and does not connect if it may not ask: ProtectHome=yes forbids it."""
    for unit in sorted((DEPLOY / "systemd").glob("*.service")):
        assert "\nProtectHome=tmpfs\n" in unit.read_text("utf-8"), unit.name
