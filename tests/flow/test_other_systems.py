"""Flows of Stepflow, and pipelines and workflows of Flowbot, carried over; and what is said about the rest."""

from typing import Any

import pytest

from outlive._features.flows.document.checking import parse_document
from outlive._features.flows.document.known_names import known_here
from outlive._features.flows.document.reading import read
from outlive._features.flows.document.writing import as_yaml
from outlive.flow import FlowError, Imported, import_document
from outlive.testing.flow_cases import run_case
from tests.flow.corpus import problems_in

STEPFLOW = """
schema: https://stepflow.org/schemas/v1/flow.json
name: Basic Math Operations
description: Adds and multiplies
version: 1.2.0
schemas:
  type: object
  properties:
    input:
      type: object
      required: [m]
      properties:
        m: { type: integer }
        n: { type: integer, pattern: "x" }
    variables:
      type: object
      required: [api_key]
      properties:
        api_key: { type: string, is_secret: true }
        mode: { type: string, default: fast, enum: [fast, slow] }
steps:
- id: sum
  component: /python/add
  input:
    a: { $input: m }
    b: { $input: "$.list[0].n" }
    key: { $variable: api_key }
  onError: { action: retry, maxRetries: 5 }
- id: mean-of-all
  component: /python/mean
  mustExecute: true
  input:
    total: { $step: sum, path: "$.total" }
    raw: { $literal: { $step: sum } }
    text: "costs ${{ nothing }}"
  onError: { action: useDefault, defaultValue: { mean: 0 } }
- id: doubler
  component: /builtin/put_blob
  input:
    blob_type: flow
    data:
      $literal:
        steps:
        - { id: twice, component: /python/double, input: { value: { $input: $ } } }
        output: { $step: twice, path: result }
- id: double_all
  component: /builtin/map
  input:
    flow_id: { $step: doubler, path: blob_id }
    items: { $input: items }
- id: kept
  component: /put_blob
  input: { data: { $step: sum } }
- id: answer
  component: /builtin/openai
  input: { messages: [{ role: user, content: { $step: kept, path: blob_id } }], api_key: { $variable: api_key } }
- id: code
  component: /python/udf
  input: { blob_id: x }
  cache: 5m
output:
  mean: { $step: mean-of-all }
  either:
    $if: { $step: sum, path: ok }
    then: { $coalesce: [{ $step: sum }, 0] }
  all: { $step: double_all, path: results }
  said: { $step: answer, path: $.response }
test:
  cases:
  - name: small
    input: { m: 1, items: [] }
    output: { outcome: success, result: { mean: 1 } }
  - name: broken
    input: { m: 1 }
    output: { outcome: failed, error: { code: COMPONENT_FAILED, message: no } }
"""

PIPELINE = """
name: news
description: Send what is new
enabled: true
resumable: false
triggers:
  - { type: event, enabled: true, event: feed.changed }
  - { type: cron, enabled: true, cron: "0 3 * * *", cron_timeout: 30m }
  - type: webhook
    enabled: true
    webhook: { path: hooks/news, method: POST, auth: { token: abc } }
  - { type: event, enabled: false, event: old }
steps:
  - name: get-feeds
    capability: rss
    operation: fetch
    params: { url: '{{event "url"}}', max: 10, note: "from {{.Event.host}} at {{now}}" }
    retry: { max_attempts: 3, delay: 1s, backoff: exponential, max_delay: 60s, jitter: true, retry_on: [timeout, odd] }
  - name: tell
    capability: core
    operation: notify_send
    params:
      payload: { count: '{{step "get-feeds" "count"}}', all: "{{json .Steps.get-feeds}}" }
"""

WORKFLOW = """
name: track
describe: Save and track
resumable: true
max_concurrency: 3
inputs:
  - { name: url, type: string, required: true }
  - { name: tag, type: string, required: false, default: none }
  - { name: more, type: json }
pipeline: [start, left, right, join]
tasks:
  - { id: start, action: "mapper:", params: { url: "{{input.url}}" } }
  - { id: left, action: capability:karakeep.create, conn: [start], params: { seed: '{{step "start" "result"}}' } }
  - { id: right, action: "shell:ls -l", conn: [start] }
  - { id: join, action: "docker:alpine", conn: [left, right], params: { cmd: "echo {{left.result.id}}" } }
  - { id: forgotten, action: "mapper:" }
"""


def imported(text: str) -> Imported:
    """The flow, which is a good one."""
    made = import_document(text)
    written = as_yaml(made.data)
    assert [each for each in problems_in(written, known_here()) if "warning" not in each] == []
    return made


def notes(made: Imported) -> list[str]:
    """What a person has to do, without columns."""
    return [f"{each.line}: {each.message}" for each in made.problems]


def test_a_flow_of_stepflow_keeps_its_meaning() -> None:
    """References, retries, defaults, secrets, tests, and the flow that it put into a blob."""
    made = imported(STEPFLOW)
    data = made.data

    assert data["name"] == "basic_math_operations"
    assert data["input"] == {
        "m": {"type": "integer"},
        "n": {"type": "integer", "required": False},
        "list": {"type": "any", "required": False},
        "items": {"type": "any", "required": False},
    }
    assert data["vars"]["api_key"] == {"type": "string", "secret": True, "env": "API_KEY"}
    assert data["vars"]["mode"] == {"type": "string", "default": "fast", "schema": {"enum": ["fast", "slow"]}}
    assert data["steps"]["sum"] == {
        "use": "python.add",
        "with": {"a": "${{ input.m }}", "b": "${{ input.list[0].n }}", "key": "${{ vars.api_key }}"},
        "on_error": {"retry": {"attempts": 6}},
    }
    assert data["steps"]["mean_of_all"] == {
        "use": "python.mean",
        "with": {
            "total": "${{ steps.sum.total }}",
            "raw": {"$literal": {"$step": "sum"}},
            "text": "costs $${{ nothing }}",
        },
        "must_run": True,
        "on_error": {"use_default": {"mean": 0}},
    }
    assert data["steps"]["double_all"]["with"]["do"] == {
        "steps": {"twice": {"use": "python.double", "with": {"value": "${{ item }}"}}},
        "output": {"outcome": "success", "result": "${{ steps.twice.result }}"},
    }
    assert "doubler" not in data["steps"]
    assert data["output"]["mean"] == "${{ steps.mean_of_all }}"
    assert data["steps"]["kept"] == {"use": "blob", "with": {"put": "${{ steps.sum }}"}}
    assert data["steps"]["answer"]["with"] == {
        "messages": [{"role": "user", "content": "${{ steps.kept.id }}"}],
        "key": "${{ vars.api_key }}",
    }
    assert data["output"]["said"] == "${{ steps.answer.text }}"
    assert data["tests"][1]["error"] == {"message": "no"}


def test_an_import_from_stepflow_names_the_lines_that_it_leaves_out() -> None:
    """An import from Stepflow names each line that it cannot carry over."""
    assert notes(imported(STEPFLOW)) == [
        "6: `pattern` of a schema is not checked here, and left out",
        "58: code inside a flow is not carried over",
        "60: `cache` of a step is not carried over",
    ]


MAPPED = """
steps:
- id: doubled
  component: /builtin/map
  input:
    items: { $input: items }
    workflow:
      $literal:
        steps:
        - { id: a, component: /mock/double, input: { n: { $input: $ } } }
        output: { $step: a }
output:
  first: { $step: doubled, path: "results[0].result" }
  all: { $step: doubled, path: results }
  whole: { $step: doubled }
test:
  cases:
  - name: one of them fails
    input: { items: [1, x, 3] }
"""


async def test_items_of_a_map_of_stepflow_have_an_outcome_each() -> None:
    """A step that refers to the results of a map sees `{outcome, result}` for each item, and a failed one fails no
    other."""
    made = import_document(MAPPED)
    inner = made.data["steps"]["doubled"]["with"]["do"]["steps"]
    # A step inside is not mocked by name.
    inner["a"] = {"use": "noop", "with": {"n": "${{ item * 2 }}"}}
    document = parse_document(as_yaml(made.data), known=known_here())

    result = await run_case(document, document.tests[0])

    outcomes = [
        {"outcome": "success", "result": {"n": 2}},
        {"outcome": "failed"},
        {"outcome": "success", "result": {"n": 6}},
    ]
    whole = {"results": outcomes, "successful": 2, "failed": 1}
    assert result.output == {"first": {"n": 2}, "all": outcomes, "whole": whole}


CALLING = """
name: Outer
steps:
- id: stored
  component: /builtin/put_blob
  input:
    blob_type: flow
    data:
      $literal:
        name: Inner
        steps: [{ id: hello, component: /builtin/noop, input: { text: { $input: who } } }]
        output: { $step: hello, path: text }
- id: called
  component: /builtin/eval
  input: { flow_id: { $step: stored, path: blob_id }, input: { who: Ann } }
- id: again
  component: /builtin/eval
  input: { flow_id: { $step: stored, path: blob_id }, input: { who: Bob } }
output:
  whole: { $step: called }
  outcome: { $step: called, path: result.outcome }
  result: { $step: again, path: result.result }
test:
  cases:
  - name: both
    output:
      outcome: success
      result:
        whole: { result: { outcome: success, result: Ann } }
        outcome: success
        result: Bob
"""


async def test_a_flow_that_stepflow_evaluates_becomes_a_document_of_its_own() -> None:
    """The document that calls it sees the result in Stepflow's form; two calls of one flow are one document."""
    made = import_document(CALLING)
    assert notes(made) == ["9: the flow inside is a document of its own here, inner"] * 2
    assert list(made.inner) == ["inner"]
    inner = parse_document(as_yaml(made.inner["inner"]), known=known_here())
    document = parse_document(made.yaml(), known=known_here())

    result = await run_case(document, document.tests[0], beside=[inner])

    assert result.problems == ()


def test_inner_flows_of_one_name_that_differ_are_two_documents() -> None:
    """Inner flows of one name that have other steps, or have the name of the outer flow, get names of their own."""
    inner = {"name": "Outer", "steps": [{"id": "a", "component": "/builtin/noop", "input": {"n": 1}}]}
    other = {"name": "Outer", "steps": [{"id": "a", "component": "/builtin/noop", "input": {"n": 2}}]}
    steps = [
        {"id": f"s{number}", "component": "/builtin/eval", "input": {"flow": each}}
        for number, each in enumerate((inner, other, inner))
    ]

    made = import_document(as_yaml({"name": "Outer", "steps": steps}))

    assert [each["with"]["name"] for each in made.data["steps"].values()] == ["outer_2", "outer_3", "outer_2"]
    assert {name: each["name"] for name, each in made.inner.items()} == {"outer_2": "outer_2", "outer_3": "outer_3"}


def test_facts_of_a_file_that_stepflow_loads_are_kept() -> None:
    """The size comes with the file; its path and format are those of the document."""
    made = imported("""
steps:
- { id: load, component: /builtin/load_file, input: { path: data/today.yml } }
output:
  size: { $step: load, path: $.metadata.size_bytes }
  all: { $step: load, path: metadata }
  later: { $step: load, path: metadata.modified }
""")

    facts = {"path": "data/today.yml", "size_bytes": "${{ steps.load.size }}", "format": "yaml"}
    assert made.data["output"] == {"size": "${{ steps.load.size }}", "all": facts, "later": ""}
    assert notes(made) == ["7: `metadata.modified` of a file is not known here"]


def test_a_variable_that_may_be_null_need_not_be_given() -> None:
    """A type in a list with null is a variable of that type which may be left out."""
    made = imported("""
schemas:
  properties:
    variables:
      required: [url, level]
      properties:
        url: { type: [string, "null"], default: null }
        level: { type: [string, integer], default: 1 }
steps: [{ id: a, component: /builtin/noop, input: { url: { $variable: url } } }]
""")

    assert made.data["vars"] == {
        "url": {"type": "string", "required": False},
        "level": {"schema": {"type": ["string", "integer"]}, "default": 1},
    }


MOCKED = """
name: mocked
steps:
- { id: one-output, component: /mock/one, input: { input: { $input: name } } }
- { id: two, component: /mock/unknown, input: {} }
output: { $step: one-output, path: output }
test:
  cases:
  - { name: good, input: { name: a }, output: { outcome: success, result: b } }
  - { name: bad, input: { name: e }, output: { outcome: failed, error: { message: no } } }
  - name: not known
    input: { name: z }
    output: { outcome: failed, error: { message: 'step "one-output" failed' } }
"""
CONFIG = """
plugins:
  mock:
    type: mock
    components:
      /one:
        behaviors:
          { input: a }: { outcome: success, result: { output: b } }
          ? { input: e }
          : { outcome: failed, error: { code: GONE, message: "no, gone" } }
  real: { type: stepflow, command: uv }
routes:
  "/mock": [{ plugin: mock }]
  "/python": [{ plugin: real }]
"""


async def test_mock_plugins_of_stepflow_become_mocks_of_the_tests() -> None:
    """Each answer of the configuration is an answer by arguments, and the tests of the document pass with them."""
    made = import_document(MOCKED, config=CONFIG)
    assert notes(made) == ["5: the mock plugin has no component /mock/unknown"]
    assert made.data["tests"][0]["mocks"] == {
        "one_output": {
            "when": [
                {"with": {"input": "a"}, "result": {"output": "b"}},
                {"with": {"input": "e"}, "error": {"type": "GONE", "message": "no, gone"}},
            ]
        }
    }
    document = parse_document(made.yaml(), known=known_here())

    assert [(await run_case(document, case)).problems for case in document.tests] == [(), (), ()]


@pytest.mark.parametrize("config", ["[", "a: b: c", "x" * (1 << 21)])
def test_a_configuration_that_cannot_be_read_is_refused(config: str) -> None:
    """The error says that it is the configuration, and not the document."""
    with pytest.raises(FlowError, match="the configuration"):
        import_document(MOCKED, config=config)


@pytest.mark.parametrize(
    "config", ["", "[]", "plugins: 1", "routes: { /mock: [{ plugin: mock }] }", "routes: { /mock: 1 }\nplugins: {}"]
)
def test_a_configuration_without_mock_plugins_adds_nothing(config: str) -> None:
    """A configuration of another shape has no answers to carry over."""
    assert "mocks" not in import_document(MOCKED, config=config).data["tests"][0]


def test_a_pipeline_of_flowbot_runs_its_steps_in_order() -> None:
    """The data of its event is the input of the flow."""
    made = imported(PIPELINE)
    data = made.data

    assert data["triggers"] == [
        {"event": "feed.changed"},
        {"schedule": "0 3 * * *"},
        {"webhook": "/hooks/news", "token": "webhook_token"},
    ]
    assert data["vars"]["webhook_token"]["secret"] is True
    assert data["steps"]["get_feeds"] == {
        "use": "rss.fetch",
        "with": {"url": "${{ input.url }}", "max": 10, "note": "from ${{ input.host }} at {{now}}"},
        "retry": {"attempts": 3, "first": "1s", "cap": "60s", "kind": "exponential", "on": ["TimeoutError", "odd"]},
    }
    assert data["steps"]["tell"]["after"] == ["get_feeds"]
    assert data["steps"]["tell"]["with"]["payload"] == {
        "count": "${{ steps.get_feeds.count }}",
        "all": "${{ steps.get_feeds }}",
    }
    assert data["resumable"] is False
    assert data["timeout"] == "30m"
    assert notes(made) == [
        "9: the token of a webhook is a secret, and not in the flow",
        "12: a disabled trigger is left out",
        "17: the template {{now}} computes something that is not carried over",
    ]


def test_a_workflow_of_flowbot_becomes_a_graph() -> None:
    """By `conn` where tasks may run side by side, and in the order of `pipeline` where not."""
    made = imported(WORKFLOW)
    data = made.data

    assert data["concurrency"] == 3
    assert data["input"]["tag"] == {"type": "string", "default": "none"}
    assert data["input"]["more"] == {"type": "any", "required": False}
    assert data["steps"]["start"] == {"use": "noop", "with": {"url": "${{ input.url }}"}}
    assert data["steps"]["left"]["with"] == {"seed": "${{ steps.start }}"}
    assert data["steps"]["join"]["after"] == ["left", "right"]
    assert data["steps"]["join"]["with"] == {
        "image": "alpine",
        "arguments": ["sh", "-c", "echo ${{ steps.left.id }}"],
    }
    assert notes(made) == [
        "14: a flow cannot say by itself what runs on a machine: ls -l",
        "15: a flow cannot say by itself what runs on a machine: alpine",
        "16: task forgotten is not in `pipeline`, so it is left out",
    ]
    alone = imported(WORKFLOW.replace("max_concurrency: 3", "max_concurrency: 1")).data
    assert [step.get("after") for step in alone["steps"].values()] == [None, ["start"], ["left"], ["right"]]


@pytest.mark.parametrize("text", ["name: orders\nsteps: {a: {use: b}}", "- a", "a: 1"])
def test_a_document_of_neither_is_refused(text: str) -> None:
    """One of ours, too: there is nothing to import."""
    with pytest.raises(FlowError, match="neither Stepflow"):
        import_document(text)


def test_a_document_that_is_broken_itself_is_refused_with_its_lines() -> None:
    """All that is wrong with it, as of one of ours."""
    with pytest.raises(FlowError) as caught:
        import_document("name: x\nsteps:\n- {id: a, component: /b, onError: {action: 5}}\n- {component: 7}\n", "x.yaml")

    assert str(caught.value).splitlines() == [
        "x.yaml:3:44: steps[0].onError.action is 5; expected text",
        "x.yaml:4:3: `id` of steps[1] is missing",
        "x.yaml:4:15: steps[1].component is 7; expected text",
    ]


@pytest.mark.parametrize(
    "data",
    [
        {"a": "0o17", "b": ["no", "on", "1e3", "12:30", "~", ""], "c": {"d": None, "e": 1.5, "f": True}},
        {"text": "two\nlines", "indented": "  a\n b", "tail": "x\n\n", "é": "\u2028 \t", "long": "word " * 50},
        {"${{ x }}": "${{ y }}", "quote": 'it\'s "x"', "hash": "# no", "colon": "a: b"},
    ],
)
def test_written_yaml_is_read_as_the_same_data(data: dict[str, Any]) -> None:
    """YAML that an import writes is read as the same data, though PyYAML writes by the rules of YAML 1.1."""
    assert read(as_yaml(data)).data == data
