"""What Outlive is made of: nothing in it runs data, and everything that comes with it is pinned and listed."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
DEPLOY = ROOT / "deploy"
WORKFLOWS = sorted((ROOT / ".github" / "workflows").iterdir())
IMAGE = re.compile(r"[\w./-]+:[\w.-]+@sha256:[0-9a-f]{64}")
LOCKS = sorted((ROOT / "requirements").glob("*.txt"))
BANNED_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "jsonpickle", "jinja2", "telnetlib", "ftplib"}
BANNED_CALLS = {"eval", "exec", "compile", "__import__", "os.system", "os.popen", "yaml.load", "yaml.unsafe_load"}
BANNED_NAMES = {call.rpartition(".")[2] for call in BANNED_CALLS}


def is_banned(function: ast.expr) -> bool:
    """Whether it is one of these. Most are not even called so, which is seen sooner."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return name in BANNED_NAMES and ast.unparse(function) in BANNED_CALLS


def breaches() -> Iterator[str]:
    """Where the package could run what it reads."""
    for path in sorted(PACKAGE.rglob("*.py")):
        place = path.relative_to(PACKAGE).as_posix()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (f"{place}: {it.name}" for it in node.names if it.name.split(".")[0] in BANNED_MODULES)
            elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in BANNED_MODULES:
                yield f"{place}: {node.module}"
            elif isinstance(node, ast.Call):
                if is_banned(node.func):
                    yield f"{place}: {ast.unparse(node.func)}"
                if any(it.arg == "shell" and ast.unparse(it.value) != "False" for it in node.keywords):
                    yield f"{place}: shell="


def test_nothing_in_the_package_runs_data() -> None:
    """No pickle, no eval, no shell, no loader of YAML that makes objects. [S18 S26 S40]"""
    assert [] == list(breaches())


def imported() -> Iterator[str]:
    """The packages that the code imports, wherever it does, and what it could import by name."""
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (it.name.partition(".")[0] for it in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield node.module.partition(".")[0]
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_nothing_is_installed_for_the_package_or_its_server_that_they_do_not_use() -> None:
    """Each dependency is code that runs with the rights of its user. [S39]"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["server"]]
    names = {re.split(r"[^\w-]", each)[0] for each in wanted} - {"tzdata"}  # The module zoneinfo reads that one.

    assert {"yaml" if name == "pyyaml" else name for name in names} <= set(imported())


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_everything_that_is_installed_has_a_version_and_hashes(lock: Path) -> None:
    """A file that was changed on its way is refused. [S39]"""
    entries = re.split(r"\n(?=[A-Za-z0-9])", re.sub(r"(?m)^#.*\n", "", lock.read_text("utf-8")).strip())

    assert entries
    assert [] == [entry.splitlines()[0] for entry in entries if "==" not in entry or "--hash=sha256:" not in entry]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_an_action_of_others_is_one_commit(workflow: Path) -> None:
    """A tag is what its owner says today; the comment says which release the commit is. [S39]"""
    used = re.findall(r"(?m)^\s*(?:- )?uses: (.*)$", workflow.read_text("utf-8"))

    assert used
    assert [] == [line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+", line)]


def images() -> Iterator[str]:
    """The images of others that the files in deploy/ name."""
    yield from re.findall(r"(?m)^FROM (\S+)", (DEPLOY / "Dockerfile").read_text("utf-8"))
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text("utf-8"))["services"]
    yield from (service["image"] for service in services.values() if "image" in service)


def test_an_image_of_others_has_its_digest() -> None:
    """Every image of others is named with its digest, because its owner may move the tag. [S39]"""
    found = list(images())

    assert len(found) == 2
    assert [] == [image for image in found if not IMAGE.fullmatch(image)]


def test_the_image_is_made_of_what_has_a_hash() -> None:
    """Each installation names hashes, or fetches nothing. Tools that build what is not a wheel have no hashes. [S39]"""
    text = (DEPLOY / "Dockerfile").read_text("utf-8")
    installed = re.findall(r"pip install (.*?)(?: &&|; fi)", re.sub(r"(?m)^#.*\n", "", text))

    assert len(installed) == 2
    for options in installed:
        assert "--no-index" in options or {"--require-hashes", "--only-binary"} <= set(options.split()), options


def test_the_lock_of_the_image_has_all_that_its_extras_want() -> None:
    """The lock of a server and what PostgreSQL and traces need besides: the same versions. [S39]"""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["server"], *extras["postgres"], *extras["otel"]]
    served, image = (
        set(re.findall(r"(?m)^[\w.-]+==\S+", (ROOT / "requirements" / name).read_text("utf-8")))
        for name in ("run.txt", "image.txt")
    )

    assert served <= image
    assert {re.split(r"[^\w-]", each)[0] for each in wanted} <= {it.partition("==")[0] for it in image}


def documents(kind: str) -> list[dict[str, Any]]:
    """The manifests of a kind."""
    found = yaml.safe_load_all((DEPLOY / "kubernetes" / "outlive.yaml").read_text("utf-8"))
    return [document for document in found if document["kind"] == kind]


def test_a_pod_has_no_key_of_the_cluster_and_answers_those_that_are_named() -> None:
    """A token of the cluster that no code needs would be a thief's; a pod of another team has nothing to ask. [S45]"""
    policies = {it["metadata"]["name"]: it["spec"] for it in documents("NetworkPolicy")}
    deployments = documents("Deployment")

    assert len(deployments) == 2
    for deployment in deployments:
        pod = deployment["spec"]["template"]
        policy = policies[deployment["metadata"]["name"]]
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert policy["podSelector"]["matchLabels"] == pod["metadata"]["labels"]
        assert "Ingress" in policy["policyTypes"]
        ports = {port["name"] for it in pod["spec"]["containers"] for port in it["ports"]}
        for rule in policy["ingress"]:
            assert rule["from"]
            assert {port["port"] for port in rule["ports"]} <= ports


RENEWED = {
    r"\.github/workflows/.*\.ya?ml": "github-actions",
    r".*Dockerfile": "docker",
    r".*compose\.ya?ml": "docker-compose",
    r".*requirements/.*\.txt": "pip",
    r".*package-lock\.json": "npm",
}
"""Which files have pins, and what renews them."""


def test_every_kind_of_pin_is_renewed() -> None:
    """Every file with pins in the repository has its updates, because a pin that is never renewed keeps its holes.
    [S39]"""
    updates = yaml.safe_load((ROOT / ".github" / "dependabot.yml").read_text("utf-8"))["updates"]
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    wanted = {
        (ecosystem, "/" if ecosystem == "github-actions" else f"/{Path(name).parent.as_posix()}")
        for name in listed
        for pattern, ecosystem in RENEWED.items()
        if re.fullmatch(pattern, name)
    }

    assert {(it["package-ecosystem"], it["directory"]) for it in updates} == wanted
    assert {ecosystem for ecosystem, _ in wanted} == set(RENEWED.values())


def test_the_bill_of_materials_has_all_that_the_lock_has() -> None:
    """Each with its version and its hashes, in the form that scanners read. [S39]"""
    lock = ROOT / "requirements" / "run.txt"
    made = subprocess.run([sys.executable, ROOT / ".ci" / "sbom", lock, "1.2.3"], capture_output=True, check=True)
    bill, text = json.loads(made.stdout), lock.read_text("utf-8")

    pinned = set(re.findall(r"(?m)^([A-Za-z0-9._-]+(?:==)[^\s;\\]+)", re.sub(r"\[[^]]*\]", "", text)))
    assert {f"{it['name']}=={it['version']}" for it in bill["components"]} == {it.lower() for it in pinned}
    assert sum(len(it["hashes"]) for it in bill["components"]) == text.count("--hash=sha256:")
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    assert bill["metadata"]["component"]["purl"] == "pkg:pypi/outlive@1.2.3"
    assert set(bill["dependencies"][0]["dependsOn"]) == {it["bom-ref"] for it in bill["components"]}


def test_the_security_page_says_who_is_trusted() -> None:
    """The security page says who may do what by design, what is stored in plain text, and where to report. [S32 S42]"""
    text = (ROOT / "SECURITY.md").read_text("utf-8")

    for who in ("code of workflows", "operator", "database", "API key", "publish flows", "webhooks", "payloads"):
        assert re.search(rf"(?m)^\|[^|]*{who}", text), who
    assert "## Reporting" in text
    assert "Names, tags, error messages and the ids of runs are stored and shown in plain text" in text


def test_the_threat_model_names_rules_that_there_are() -> None:
    """Each row says what a person or a program cannot do, and which rules see to that. [S42]"""
    page = (ROOT / "docs" / "guides" / "security.md").read_text("utf-8")
    table = page.partition("## Who can do what")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if re.search(r"S\d+ \|$", line)]
    rules = set(re.findall(r"(?m)^\| (S\d+) ", (ROOT / "docs" / "internals" / "security.md").read_text("utf-8")))

    for who in (
        "publisher",
        "operator",
        "viewer",
        "worker",
        "sender of webhooks",
        "link to decide",
        "reader of the store",
    ):
        assert [row for row in rows if who in row[0]], who
    assert set(re.findall(r"S\d+", " ".join(row[-1] for row in rows))) <= rules


@pytest.mark.parametrize(
    ("file", "lines"),
    [
        ("Dockerfile", ["USER outlive"]),
        ("compose.yaml", ["read_only: true", "no-new-privileges:true", "cap_drop: [ALL]"]),
        (
            "kubernetes/outlive.yaml",
            ["runAsNonRoot: true", "allowPrivilegeEscalation: false", "readOnlyRootFilesystem: true"],
        ),
        ("systemd/outlive-worker@.service", ["User=outlive", "NoNewPrivileges=yes", "ProtectSystem=strict"]),
        ("systemd/outlive-server.service", ["User=outlive", "NoNewPrivileges=yes", "ProtectSystem=strict"]),
    ],
)
def test_deployments_give_processes_no_rights_that_they_do_not_need(file: str, lines: list[str]) -> None:
    """No root, no new privileges, and no file of the program that it could change. [S45]"""
    text = (ROOT / "deploy" / file).read_text("utf-8")

    assert [] == [line for line in lines if line not in text]


def test_attacks_on_the_api_run_every_week() -> None:
    """The proofs of the HTTP API that take too long for each commit run on both stores. [S41]"""
    (path,) = [each for each in WORKFLOWS if each.name == "test.yml"]
    workflow = yaml.safe_load(path.read_text("utf-8"))
    job = workflow["jobs"]["attacks"]
    commands = [step["run"].split()[:3] for step in job["steps"] if "run" in step]

    assert "schedule" in workflow[True]  # YAML reads `on` as true.
    assert (job["if"], job["strategy"]["matrix"]) == (
        "github.event_name == 'schedule'",
        {"store": ["sqlite", "postgres"]},
    )
    assert commands == [["make", proof, "STORE=${{"] for proof in ("schema", "verbs", "malformed")]
