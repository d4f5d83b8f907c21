"""What users install."""

from pathlib import Path

from hatchling.builders.wheel import WheelBuilder

ROOT = Path(__file__).parents[2]


def test_the_wheel_has_the_package_and_not_its_proof() -> None:
    """The tools for users' tests are in it; the programs that prove the engine, and our tests, are not."""
    files = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}

    assert {path.split("/")[0] for path in files} == {"outlive", "pytest_outlive"}
    assert {"outlive/py.typed", "outlive/testing/engine.py", "outlive/testing/postgres.py"} <= files
    assert {"outlive/testing/conformance/suite.py", "outlive/testing/crash/everywhere.py"} <= files
    programs = {path.name for path in (ROOT / "proof").iterdir() if (path / "__main__.py").is_file()}
    assert programs
    assert not [path for path in files if programs & set(path.split("/"))]
