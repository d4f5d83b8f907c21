"""The dashboard and the alert rules name metrics, labels and functions that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from outlive.metrics.table import METRICS
from tests.docs.page import ROOT

DASHBOARD = ROOT / "deploy" / "grafana" / "outlive.json"
RULES = ROOT / "deploy" / "prometheus" / "outlive.rules.yml"
ADAPTER = ROOT / "deploy" / "kubernetes" / "prometheus-adapter.yaml"
LABELS = {metric.name: {*metric.labels, "job", "instance"} for metric in METRICS}
for metric in METRICS:
    if metric.kind == "histogram":
        LABELS |= {f"{metric.name}_{part}": LABELS[metric.name] | {"le"} for part in ("bucket", "sum", "count")}


def queries() -> Iterator[tuple[str, str]]:
    """Every query, with the place that it is at."""
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]
    for rule in yaml.safe_load(ADAPTER.read_text("utf-8"))["rules"]["external"]:
        yield ADAPTER.name, rule["seriesQuery"]
        yield ADAPTER.name, rule["metricsQuery"]
    for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]:
        for target in panel.get("targets", ()):
            yield panel["title"], target["expr"]


@pytest.mark.parametrize(("place", "query"), list(queries()))
def test_a_query_names_metrics_and_labels_that_exist(place: str, query: str) -> None:
    """A renamed metric would leave an empty panel, and an alert that never comes."""
    named = re.findall(r"\boutlive_\w+", query)
    assert named, place
    for name in named:
        assert name in LABELS, f"{place}: there is no metric {name}"
    for name, selector in re.findall(r"\b(outlive_\w+)\{([^}]*)\}", query):
        assert set(re.findall(r"(\w+)=~?\"", selector)) <= LABELS[name], f"{place}: {name} has no such label"
    for names in re.findall(r"\bby \(([^)]*)\)", query):
        wanted = {label.strip() for label in names.split(",")}
        assert any(wanted <= LABELS[name] for name in named), f"{place}: no metric has all of {names}"
    assert query.count("(") == query.count(")")


def test_a_histogram_is_not_used_as_a_gauge() -> None:
    """Its own name has no samples: only its buckets, its sum and its count have."""
    bare = {metric.name for metric in METRICS if metric.kind == "histogram"}

    assert [place for place, query in queries() if bare & set(re.findall(r"\boutlive_\w+", query))] == []


def test_every_rule_says_what_to_do_and_how_bad_it_is() -> None:
    """A person reads it at night."""
    rules: list[dict[str, Any]] = yaml.safe_load(RULES.read_text("utf-8"))["groups"][0]["rules"]

    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(
        rule["annotations"]["summary"] and rule["labels"]["severity"] in ("warning", "critical") for rule in rules
    )
