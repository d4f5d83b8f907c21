"""The files in deploy/: every command in them is one that we have, with options that it knows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml

from outlive.cli import main
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
    for unit in sorted((DEPLOY / "systemd").iterdir()):
        (line,) = re.findall(r"^ExecStart=\S*/outlive (.*)$", unit.read_text("utf-8"), flags=re.MULTILINE)
        yield unit.name, line.split()


@pytest.mark.parametrize(("where", "words"), [pytest.param(*found, id=found[0]) for found in commands()])
def test_every_command_of_a_deployment_is_one_that_we_have(
    where: str, words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parsed as the command line parses it, and not run."""
    monkeypatch.setenv("OUTLIVE_STORE", "postgresql://nobody@localhost/nothing")
    command = main.get_command(click.Context(main), words[0])
    assert command is not None, where
    context = command.make_context(words[0], list(words[1:]))
    assert not context.args


def test_the_image_of_the_compose_file_is_built_where_its_dockerfile_is() -> None:
    """Docker Compose reads paths from the folder of the compose file, wherever it is called."""
    compose = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))
    unset = re.compile(r"\$\{\w+:-(.*)\}")
    for name in ("worker", "server"):
        build = {key: unset.sub(r"\1", value) for key, value in compose["services"][name]["build"].items()}
        assert (DEPLOY / build["context"] / build["dockerfile"]).is_file()


def test_the_autoscaler_reads_a_metric_that_the_adapter_makes_of_one_of_ours() -> None:
    """Every worker says how many runs of the whole store wait: a sum over workers would grow with their number."""
    documents = yaml.safe_load_all((DEPLOY / "kubernetes" / "outlive.yaml").read_text("utf-8"))
    (scaler,) = [document for document in documents if document["kind"] == "HorizontalPodAutoscaler"]
    adapter = yaml.safe_load((DEPLOY / "kubernetes" / "prometheus-adapter.yaml").read_text("utf-8"))
    (rule,) = adapter["rules"]["external"]

    assert [it["external"]["metric"]["name"] for it in scaler["spec"]["metrics"]] == [rule["name"]["as"]]
    assert rule["seriesQuery"] in {metric.name for metric in METRICS}
    assert rule["metricsQuery"] == f"sum(max by (queue) ({rule['seriesQuery']}))"
