"""What users install."""

import tomllib
from pathlib import Path
from typing import Any

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]
CONFORMANCE = ROOT / "conformance"


def files_in_the_wheel(project: Path) -> set[str]:
    """The paths that a wheel of the project has."""
    return {file.distribution_path for file in WheelBuilder(str(project)).recurse_included_files()}


def declared(project: Path) -> dict[str, Any]:
    """What the project says of itself."""
    found: dict[str, Any] = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    return found


def test_the_wheel_has_the_package_and_not_its_proof() -> None:
    """The tools for users' tests are in it; the conformance suite, the programs of the proof and our tests are not."""
    files = files_in_the_wheel(ROOT)

    assert {path.split("/")[0] for path in files} == {"outlive", "pytest_outlive"}
    assert {"outlive/py.typed", "outlive/testing/engine.py", "outlive/testing/crash/everywhere.py"} <= files
    assert not [path for path in files if "conformance" in path or path.endswith(("testing/postgres.py", "proxy.py"))]
    assert not [
        path
        for path in files
        if path.startswith("outlive/dashboard") and path.endswith((".d.ts", "lock.json", "config.json", "package.json"))
    ]
    programs = {path.name for path in (ROOT / "proof").iterdir() if (path / "__main__.py").is_file()}
    assert programs
    assert not [path for path in files if programs & set(path.split("/"))]


def test_the_wheel_for_authors_of_stores_has_the_suite_and_the_servers() -> None:
    """The suite and the servers are a package of their own, with its types."""
    files = files_in_the_wheel(CONFORMANCE)

    assert {path.split("/")[0] for path in files} == {"outlive_conformance"}
    assert {f"outlive_conformance/{name}" for name in ("py.typed", "suite/whole.py", "servers/postgres.py")} <= files


def test_the_package_for_authors_of_stores_belongs_to_this_version() -> None:
    """The contract of a store may change with every version, and the suite changes with it."""
    outlive, conformance = declared(ROOT), declared(CONFORMANCE)
    version = outlive["project"]["version"]
    wanted = conformance["project"]["dependencies"]
    extras = outlive["project"]["optional-dependencies"]
    known = {*outlive["project"]["dependencies"], *extras["dev"], f"outlive=={version}"}

    assert conformance["project"]["version"] == version
    assert f"outlive=={version}" in wanted
    assert {*wanted, *conformance["project"]["optional-dependencies"]["postgres"]} <= known
    assert conformance["build-system"] == outlive["build-system"]
