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

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "outlive"
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


def test_what_is_trusted_is_written_down() -> None:
    """Who may do what by design, and where to write if something else is possible. [S42]"""
    text = (ROOT / "SECURITY.md").read_text("utf-8")

    for who in ("code of workflows", "operator", "database", "API key", "publish flows", "webhooks", "payloads"):
        assert re.search(rf"(?m)^\|[^|]*{who}", text), who
    assert "## Reporting" in text


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
