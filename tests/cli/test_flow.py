"""`outlive flows` as a shell sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from click.testing import CliRunner, Result

import outlive
from outlive._kernel.define.registry import REGISTRY
from outlive.cli import main

Ask = Callable[..., Result]

DOUBLE = """\
name: cli-double
input: { n: { type: integer } }
steps:
  twice: { use: cli.double, with: { n: "${{ input.n }}" } }
  half: { use: noop, with: { n: "${{ input.n }}" } }
output: "${{ steps.twice }}"
tests:
  - name: four            # of two
    input: { n: 2 }
    output: 5
  - name: mocked
    input: { n: 2 }
    mocks: { twice: { result: 7 } }
    output: 7
"""


@outlive.step(name="cli.double")
async def double(n: int) -> int:
    """What the flow calls; 13 is not liked."""
    if n == 13:
        raise ValueError("unlucky")
    return n * 2


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Gives commands in a folder with a document."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("USER", "ann")
    (tmp_path / "double.flow.yaml").write_text(DOUBLE)

    def give(*args: str) -> Result:
        found: list[Result] = []
        thread = Thread(target=lambda: found.append(CliRunner().invoke(main, ["flows", *args])))
        thread.start()
        thread.join()
        return found[0]

    return give


STORE = ("--store", "sqlite:flows.db")


def test_first_minutes_of_a_flow(ask: Ask) -> None:
    """A new document is whole: it can be checked, tested, shown and run as it is."""
    assert "greet.flow.yaml is written" in ask("new", "greet").output
    assert "greet.flow.yaml: ok\n" == ask("check", "--strict", "greet.flow.yaml").output
    assert "1 test passed" in ask("test", "greet.flow.yaml").output
    shown = ask("show", "greet.flow.yaml").output.splitlines()
    assert ["greet", "noop"] == shown[1].split()
    assert ["rest", "sleep", "after", "greet"] == shown[2].split()
    ran = ask("run", "greet.flow.yaml", "--input", '{"who": "Bob"}')
    assert (0, '"Hello, Bob!"') == (ran.exit_code, ran.stdout.strip())
    assert "this run is in memory" in ran.stderr
    assert "greet: succeeded" in ran.stderr
    assert "$schema=flow.schema.json" in Path("greet.flow.yaml").read_text()
    assert json.loads(Path("flow.schema.json").read_text()) == json.loads(ask("schema").output)
    assert 2 == ask("new", "greet").exit_code


def test_check_names_every_problem_with_its_line(ask: Ask) -> None:
    """One line for each, and the number of documents that cannot run; warnings count if they are to."""
    Path("bad.yaml").write_text(DOUBLE.replace("steps.twice", "steps.twise").replace("n: 2", "m: 2"))
    bad = ask("check", "bad.yaml", "double.flow.yaml")
    assert 1 == bad.exit_code
    assert "bad.yaml:6:" in bad.stderr
    assert "twise" in bad.stderr
    assert "1 document of 2 cannot run" in bad.stderr
    (report,) = json.loads(ask("check", "bad.yaml", "--json").stdout)
    assert (False, 6) == (report["ok"], report["problems"][0]["line"])

    Path("far.yaml").write_text(DOUBLE.replace("cli.double", "cli.far_away"))
    assert "warning: cli.far_away" in (lenient := ask("check", "far.yaml")).stderr
    assert (0, 1) == (lenient.exit_code, ask("check", "--strict", "far.yaml").exit_code)


def test_tests_of_a_document(ask: Ask) -> None:
    """Which failed and how; one by its name; and the expected output written where it belongs. [FE-A8]"""
    failed = ask("test", "double.flow.yaml", "--diff")
    assert (1, True) == (failed.exit_code, "its output is 4; expected 5" in failed.output)
    assert "-5" in failed.output
    assert "1 test passed, 1 failed" in failed.output
    assert "1 test passed\n" in ask("test", "double.flow.yaml", "--case", "mocked").output
    assert 2 == ask("test", "double.flow.yaml", "--case", "nothing").exit_code
    reports = json.loads(ask("test", "double.flow.yaml", "--json").stdout)
    assert [("four", False), ("mocked", True)] == [(each["name"], each["passed"]) for each in reports]

    assert 0 == ask("test", "double.flow.yaml", "--update").exit_code
    assert DOUBLE.replace("output: 5", "output: 4") == Path("double.flow.yaml").read_text()


def test_expected_outputs_are_written_over_maps_and_lists(ask: Ask) -> None:
    """In braces or over several lines; the document is whole afterwards, with its comments."""
    text = """name: cli-updated
steps: { a: { use: noop, with: { x: 1, y: [1, 2] } } }
output: "${{ steps.a }}"
tests:
  - name: braces
    output: { x: { z: [] } }  # what it gives
  - name: lines
    output:
      x: 1
      y:
        - 1   # the first

    # The third one.
  - { name: none, steps: { a: 5 } }
  - name: left alone
    output: { x: 1, y: [1, 2] }
"""
    Path("updated.yaml").write_text(text)
    assert 1 == ask("test", "updated.yaml").exit_code
    assert "3 expected outputs written" in ask("test", "updated.yaml", "--update").output

    written = Path("updated.yaml").read_text()
    found = '{"x":1,"y":[1,2]}'
    expected = text.replace("{ x: { z: [] } }", found).replace("x: 1\n      y:\n        - 1 ", f"{found} ")
    assert expected.replace("name: none", f"name: none, output: {found}") == written
    assert 0 == ask("check", "updated.yaml").exit_code


def test_a_step_is_called_with_given_data(ask: Ask) -> None:
    """`flows step` calls one step for real with given input and results, and asks for a result that it needs."""
    Path("two.yaml").write_text(
        DOUBLE.replace("half: { use: noop", "half: { use: cli.double").replace(
            'n: "${{ input.n }}" } }\nout', "n: '${{ steps.twice }}' } }\nout"
        )
    )
    assert "8" == ask("step", "two.yaml", "half", "--input", '{"n": 1}', "--steps", '{"twice": 4}').stdout.strip()
    missing = ask("step", "two.yaml", "half", "--input", '{"n": 1}')
    assert (2, True) == (missing.exit_code, "step half refers to twice" in missing.stderr)
    failed = ask("step", "two.yaml", "twice", "--with", '{"n": 13}', "--input", '{"n": 1}')
    assert (1, True) == (failed.exit_code, "unlucky" in failed.stderr)
    assert "has no step thrice" in ask("step", "two.yaml", "thrice").stderr


def test_library_of_a_store(ask: Ask) -> None:
    """Published, changed, taken back, disabled, deleted; what is refused is one line and a number. [FB-S9, FB-S11]"""
    assert (
        "flow cli-double published as revision 1" in ask("apply", "double.flow.yaml", "--reason", "new", *STORE).output
    )
    assert "unchanged, revision 1" in ask("apply", "double.flow.yaml", *STORE).output
    Path("next.yaml").write_text(DOUBLE.replace("output: 5", "output: 4"))
    stale = ask("apply", "next.yaml", "--expected", "0", *STORE)
    assert (1, True) == (stale.exit_code, "is at revision 1 by ann, and revision 0 was expected" in stale.stderr)

    assert "draft 1 of revision 1 is kept" in ask("draft", "next.yaml", *STORE).output
    assert "draft 1 of revision 1" in ask("list", *STORE).output
    assert "revision 2 is published" in ask("publish", "cli-double", "--reason", "right", *STORE).output
    assert "output: 4" in ask("show", "cli-double", "--as", "source", *STORE).output
    assert "output: 5" in ask("show", "cli-double", "--revision", "1", "--as", "source", *STORE).output
    assert "with the document of revision 1" in ask("rollback", "cli-double", *STORE).output
    rows = [line.split() for line in ask("history", "cli-double", *STORE).output.splitlines()[1:]]
    assert [("3", "ann"), ("2", "ann"), ("1", "ann")] == [(row[0], row[4]) for row in rows]

    assert "it is disabled by ann: closed" in ask("disable", "cli-double", "--reason", "closed", *STORE).output
    refused = ask("run", "cli-double", "--input", '{"n": 1}', *STORE)
    assert (1, True) == (refused.exit_code, "flow cli-double is disabled by ann: closed" in refused.stderr)
    assert "it is enabled" in ask("enable", "cli-double", *STORE).output
    (plain,) = json.loads(ask("list", "--json", *STORE).stdout)
    assert (3, True, None) == (plain["current"]["number"], plain["is_enabled"], plain["draft"])
    assert "flow cli-double is deleted" in ask("delete", "cli-double", *STORE).output
    assert "there are no flows in this store" in ask("list", *STORE).output
    assert "there is no flow cli-double" in ask("history", "cli-double", *STORE).stderr
    assert 2 == ask("history", "cli-double", "--store", "sqlite:nowhere.db").exit_code


def test_apply_checks_steps_of_the_users_program(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With --app, as `check` does; without it the warning says how."""
    monkeypatch.syspath_prepend(str(tmp_path))
    program = "import outlive\n\n@outlive.step(name='cli.applied')\nasync def applied(n: int) -> int:\n    return n\n"
    Path("cli_applied.py").write_text(program)
    text = DOUBLE.replace("cli.double", "cli.applied")
    Path("good.yaml").write_text(text)
    Path("bad.yaml").write_text(text.replace('with: { n: "${{ input.n }}" }', "with: { n: many }"))
    assert "in the shell: --app FILE" in ask("apply", "good.yaml", *STORE).stderr
    bad = ask("apply", "bad.yaml", "--app", "cli_applied.py", *STORE)
    assert (1, True) == (bad.exit_code, "bad.yaml:4:" in bad.stderr), bad.output
    good = ask("apply", "good.yaml", "--app", "cli_applied.py", *STORE)
    assert (0, False) == (good.exit_code, "cli.applied" in good.stderr)
    ask("draft", "bad.yaml", *STORE)
    refused = ask("publish", "cli-double", "--app", "cli_applied.py", *STORE)
    assert (1, True) == (refused.exit_code, "steps.twice.with.n" in refused.stderr), refused.output


def test_run_of_a_stored_flow(ask: Ask) -> None:
    """Followed to its end, found again by its id, and drawn with its state."""
    ask("apply", "double.flow.yaml", *STORE)
    app = ("--app", "tests.cli.test_flow")
    ran = ask("run", "cli-double", "--input", '{"n": 4}', "--id", "d-1", *app, *STORE)
    assert (0, "8") == (ran.exit_code, ran.stdout.strip()), ran.output
    assert "twice: succeeded" in ran.stderr
    again = json.loads(ask("run", "cli-double", "--input", '{"n": 4}', "--id", "d-1", "--json", *STORE).stdout)
    assert ("d-1", "succeeded", 8, "skipped") == (
        again["id"],
        again["status"],
        again["output"],
        again["steps"]["half"]["state"],
    )
    failed = ask("run", "cli-double", "--input", '{"n": 13}', "--id", "d-2", *app, *STORE)
    assert (1, True) == (failed.exit_code, "unlucky" in failed.stderr)
    drawn = ask("show", "cli-double", "--run", "d-2", *STORE).output
    assert "x twice" in drawn
    assert "ValueError: unlucky" in drawn
    assert "fill:#f8cfcf" in ask("show", "cli-double", "--run", "d-2", "--as", "mermaid", *STORE).output
    assert "picture.svg is written" in ask("show", "double.flow.yaml", "--as", "svg", "-o", "picture.svg").output
    assert Path("picture.svg").read_text().startswith("<svg")
    assert "d-3" == ask("run", "cli-double", "--input", '{"n": 1}', "--id", "d-3", "--detach", *STORE).stdout.strip()
    assert 2 == ask("run", "cli-double", "--input", "{n}", *STORE).exit_code


def test_batch_of_a_flow(ask: Ask) -> None:
    """One result for each line; the same id goes on; one that fails is its own."""
    Path("in.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(10, 15)))
    first = ask("batch", "double.flow.yaml", "in.jsonl", "--id", "b-1", "-o", "out.jsonl", *STORE)
    assert (1, True) == (first.exit_code, "5 items done, 1 of them failed" in first.stderr), first.output
    found = [json.loads(line) for line in Path("out.jsonl").read_text().splitlines()]
    assert [20, 22, 24, None, 28] == [each.get("output") for each in found]
    assert {"type": "ValueError", "message": "unlucky"} == found[3]["error"]

    Path("in.jsonl").unlink()
    again = ask("batch", "double.flow.yaml", "in.jsonl", "--id", "b-1", "--order", "finished", *STORE)
    assert list(range(5)) == sorted(json.loads(line)["index"] for line in again.stdout.splitlines())

    Path("in.csv").write_text("n,m\n1,2\n")
    rows = ask("batch", "double.flow.yaml", "in.csv")
    assert "expected" in rows.stderr or 1 == rows.exit_code  # A column is text, and the flow takes a number.
    Path("bad.jsonl").write_text('{"n": 1}\n[2]\n')
    bad = ask("batch", "double.flow.yaml", "bad.jsonl")
    assert (2, True) == (bad.exit_code, "bad.jsonl:2: it is not a JSON object" in bad.stderr)
    assert 2 == ask("batch", "double.flow.yaml", "in.csv", "--id", "b-2").exit_code


def test_documents_of_other_systems_are_imported(ask: Ask) -> None:
    """A document of Stepflow is imported as a flow of ours, and a document of neither system is refused."""
    Path("step.yaml").write_text(
        "name: cli-import\nsteps:\n  - id: one\n    component: /builtin/eval\n"
        "    input: { $from: { workflow: input } }\n"
    )
    imported = ask("import", "step.yaml", "-o", "ours.yaml")
    assert "name: cli-import" in Path("ours.yaml").read_text(), imported.output
    assert 1 == ask("import", "double.flow.yaml").exit_code


FRONT = """\
name: front
input: { order: { type: object, required: [id] } }
triggers:
  - event: order.created
  - schedule: "0 6 * * 1-5"
    timezone: Europe/Stockholm
  - webhook: /hooks/orders
steps:
  reserve:
    use: front_shop.reserve                        # a registered step
    with: { order: "${{ input.order }}" }
  charge:
    use: front_shop.charge
    with: { hold: "${{ steps.reserve.id }}", cents: "${{ input.order.cents }}" }
    retry: { attempts: 4, first: 1s }
    timeout: 30s
    on_error: { use_default: null }
  notify:
    use: http
    if: "${{ steps.charge != null }}"
    must_run: true
    with: { method: POST, url: "${{ vars.hook }}", body: { id: "${{ input.order.id }}" } }
output: "${{ steps.charge }}"
tests:
  - name: free order
    input: { order: { id: 1, cents: 0 } }
    output: null
"""
FRONT_SHOP = """\
import outlive

@outlive.step(name="front_shop.reserve")
async def reserve(order: dict) -> dict:
    return {"id": "hold"}

@outlive.step(name="front_shop.charge")
async def charge(hold: str, cents: int) -> str | None:
    return f"paid {cents}" if cents else None
"""


def test_document_that_declares_no_variables_runs_with_the_program_beside_it(ask: Ask, tmp_path: Path) -> None:
    """The first example of flows is tested, run and checked without --app, with warnings for what it leaves open."""
    (tmp_path / "front.flow.yaml").write_text(FRONT)
    (tmp_path / "front_shop.py").write_text(FRONT_SHOP)
    with REGISTRY.forgetting():
        tested = ask("test", "front.flow.yaml")
        ran = CliRunner().invoke(main, ["run", "front.flow.yaml", "--input", '{"order": {"id": 1, "cents": 0}}'])
        checked = ask("check", "front.flow.yaml")

    assert (tested.exit_code, ran.exit_code, checked.exit_code) == (0, 0, 0)
    assert "1 test passed" in tested.output
    assert ran.stdout == "null\n"
    assert "5:5: warning: triggers[1] never fires: it gives the flow no order" in checked.output
    assert "18:3: warning: vars.hook is not declared" in checked.output


def test_failed_run_says_its_error_once(ask: Ask) -> None:
    """In the line of the step that failed; the log of the worker in this process does not repeat it."""
    failed = ask("run", "double.flow.yaml", "--input", '{"n": 13}')

    assert (failed.exit_code, failed.stderr.count("unlucky")) == (1, 1), failed.stderr
    assert "failed at step twice" in failed.stderr


def test_update_says_how_many_tests_it_has_updated(ask: Ask) -> None:
    """`flows test --update` says how many tests it has updated."""
    updated = ask("test", "double.flow.yaml", "--case", "four", "--update").output.splitlines()

    assert updated[-1] == "1 test updated"


CALLS = """
name: outer
steps:
- id: called
  component: /builtin/eval
  input: { input: {}, flow: { name: inner, steps: [], output: { a: 1 } } }
output: { $step: called, path: result.result }
test: { cases: [{ name: calls, output: { outcome: success, result: { a: 1 } } }] }
"""


def test_an_import_writes_inner_flows_beside_and_tests_find_them(ask: Ask) -> None:
    """`flows import -o` writes each document, `flows test` with both runs them, and nothing else is overwritten."""
    Path("theirs.yaml").write_text(CALLS)
    assert "written: ours.yaml inner.yaml" in ask("import", "theirs.yaml", "-o", "ours.yaml").stderr
    tested = ask("test", "ours.yaml", "inner.yaml")
    assert (0, "1 test passed") == (tested.exit_code, tested.stdout.splitlines()[-1])

    again = ask("import", "theirs.yaml", "-o", "ours.yaml")
    assert (1, True) == (again.exit_code, "nothing was written: inner.yaml would be overwritten" in again.stderr)
    printed = ask("import", "theirs.yaml").stdout
    assert ["name: outer", "name: inner"] == [each.splitlines()[0] for each in printed.split("---\n")]
    assert ["inner"] == list(json.loads(ask("import", "theirs.yaml", "--json").stdout)["inner"])


def test_an_import_takes_the_answers_of_mock_plugins(ask: Ask) -> None:
    """`--config` names Stepflow's configuration."""
    Path("theirs.yaml").write_text(
        "steps: [{ id: a, component: /mock/x, input: {} }]\noutput: { $step: a }\n"
        "test: { cases: [{ name: one, output: { outcome: success, result: 5 } }] }\n"
    )
    Path("config.yml").write_text(
        "plugins: { m: { type: mock, components: { /x: { behaviors: { {}: { outcome: success, result: 5 } } } } } }\n"
        'routes: { "/mock": [{ plugin: m }] }\n'
    )
    assert 0 == ask("import", "theirs.yaml", "--config", "config.yml", "-o", "ours.yaml").exit_code
    assert "1 test passed" in ask("test", "ours.yaml").stdout
