"""Function by function, our results are those of the public index, save the documented ones."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import ValidationError

from assets.manifests import names
from assets.manifests.axes import ExpressionError, dimension, evaluate
from assets.manifests.canonical import (
    canonical_json,
    sha256_digest,
    utf8,
)
from assets.manifests.environments import environment_of
from assets.manifests.implementations import DatasetOrigin, project_of
from assets.manifests.instants import InstantError, instant_text, utc_instant
from assets.manifests.licenses import concluded_license
from assets.manifests.operations import operation_of
from assets.manifests.quarantine import RejectionError
from assets.manifests.runs import (
    LATENCY_METRIC_KEY,
    comparison_key,
    metric_key,
    round_half_up,
    trace_protocol,
)
from assets.manifests.trust import deployability, evidence_level
from assets.manifests.workloads import correctness_key, entry_key, layout_key
from assets.traces.documents import Definition, TraceEnvironment, Workload
from tests.builders import Json, definition
from tests.manifests.divergences import rules, vector_rows

REFUSED = "refused"
ORIGIN = DatasetOrigin(
    "flashinfer-ai/flashinfer-trace",
    "https://huggingface.co/datasets/flashinfer-ai/flashinfer-trace",
    "0" * 40,
)


@pytest.fixture(scope="module")
def vectors(golden: Path) -> Json:
    content: Json = json.loads((golden / "vectors.json").read_text())
    return content


def _result(function: Callable[[], object]) -> object:
    try:
        return function()
    except (RejectionError, ExpressionError, InstantError, ValidationError):
        return REFUSED


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def check(function: str, pairs: list[tuple[object, object, object]]) -> None:
    """Compare (input, expected, ours); every difference has to be a row of the document."""
    documented = {key: row for key, row in vector_rows().items() if key[0] == function}
    found = {
        (function, _text(given)): (_text(expected), _text(ours))
        for given, expected, ours in pairs
        if expected != ours
    }
    assert {key: (row.public_index, row.ours) for key, row in documented.items()} == found


def test_every_documented_vector_names_a_rule() -> None:
    assert {row.rule for row in vector_rows().values()} <= rules()


def test_kebab(vectors: Json) -> None:
    check("kebab", [(given, expected, names.kebab(given)) for given, expected in vectors["kebab"]])


def test_dtypes(vectors: Json) -> None:
    check("dtype", [(raw, expected, names.map_dtype(raw)) for raw, expected in vectors["dtype"]])


def test_languages(vectors: Json) -> None:
    pairs = [(raw, expected, names.map_language(raw)) for raw, expected in vectors["language"]]
    check("language", pairs)


def test_argument_names(vectors: Json) -> None:
    check(
        "argumentName",
        [
            (v["input"], v["value"], names.argument_name(v["input"]))
            for v in vectors["argumentName"]
        ],
    )


def test_hardware(vectors: Json) -> None:
    for name, expected in vectors["hardware"]:
        device = names.map_hardware(name)
        ours = {
            "vendor": device.vendor,
            "product": device.product,
            "architecture": device.architecture,
        }
        assert ours == expected, name


def test_instants(vectors: Json) -> None:
    check(
        "toUtcInstant",
        [
            (
                v["input"],
                REFUSED if v.get("error") else v["value"],
                _result(lambda v=v: instant_text(utc_instant(v["input"]))),
            )
            for v in vectors["toUtcInstant"]
        ],
    )


def test_axis_expressions(vectors: Json) -> None:
    pairs = []
    for v in vectors["axisExpression"]:
        expected = REFUSED if v.get("error") else v.get("value", v.get("nonfinite"))
        ours = _result(lambda v=v: evaluate(v["expression"], v["bindings"]))
        given = json.dumps([v["expression"], v["bindings"]])
        pairs.append((given, expected, ours))
    check("axisExpression", pairs)


def test_dimensions(vectors: Json) -> None:
    def entry(raw: str | int) -> object:
        document = Definition.model_validate(definition(inputs__x__shape=[raw]))
        operation = operation_of(document, path="", definitions_url=None)
        return operation.manifest.spec["inputs"][0]["tensor"]["shape"][0]

    check(
        "dimension",
        [
            (
                _text(v["input"]),
                REFUSED if v.get("rejected") else v["value"],
                _result(lambda v=v: entry(v["input"])),
            )
            for v in vectors["dimension"]
        ],
    )


def test_an_expression_over_constant_axes_is_an_integer() -> None:
    assert dimension("Hidden_Size / 2", {"hidden_size": 8}) == 4
    with pytest.raises(ExpressionError, match="unbound axis 'batch'"):
        dimension("batch / 2", {"hidden_size": 8})
    with pytest.raises(ExpressionError, match="no integer value"):
        dimension("hidden_size / 3", {"hidden_size": 8})


def test_families_and_tags(vectors: Json) -> None:
    for v in vectors["family"]:
        fields = {"op_type": "toy_add", "tags": ["status:draft", "model:Tiny-1B", "L1"]}
        document = Definition.model_validate(definition(**{**fields, **v["input"]}))
        operation = _result(lambda d=document: operation_of(d, path="", definitions_url=None))
        if v.get("rejected"):
            assert operation == REFUSED, v
        else:
            assert (operation.family, list(operation.tags)) == (v["family"], v["tags"]), v
    for v in vectors["tags"]:
        assert names.taxonomy_tags(v["input"]) == v["value"]


def test_projects(vectors: Json) -> None:
    for v in vectors["project"]:
        project = project_of(v["input"], ORIGIN)
        spec = project.manifest.spec
        ours = (project.slug, project.manifest.digest, spec["name"], spec["kind"])
        assert ours == (v["slug"], v["digest"], v["name"], v["kind"])


def test_canonical_numbers(vectors: Json) -> None:
    for v in vectors["canonicalNumber"]:
        if v["canonical"] is not None:
            assert canonical_json(json.loads(v["json"])) == v["canonical"], v
        else:
            with pytest.raises(ValueError, match="JSON"):
                canonical_json(json.loads(v["json"]))


def _from_code_units(units: list[int]) -> str:
    data = b"".join(unit.to_bytes(2, "little") for unit in units)
    return data.decode("utf-16-le", "surrogatepass")


def test_canonical_strings_and_key_order(vectors: Json) -> None:
    for v in vectors["canonicalString"]:
        assert canonical_json(_from_code_units(v["codeUnits"])) == v["canonical"]
    for v in vectors["canonicalKeyOrder"]:
        value = {name: position for position, name in enumerate(v["keys"])}
        assert canonical_json(value) == v["canonical"]


def test_sha256_of_texts(vectors: Json) -> None:
    for v in vectors["sha256Text"]["vectors"]:
        text = _from_code_units(v["utf16"])
        assert (sha256_digest(text), len(utf8(text))) == (v["sha256"], v["bytes"])


def test_workload_entry_keys(vectors: Json) -> None:
    for v in vectors["workloadEntryKey"]["vectors"]:
        assert sorted(dict(v["axes"]), key=names.collation_key) == v["sortedKeys"]
        assert entry_key(Workload(axes=dict(v["axes"]))) == v["key"]
    for v in vectors["workloadEntryKey"]["withUuid"]:
        assert entry_key(Workload(uuid=v["uuid"], axes=v["axes"])) == v["key"]
    order = vectors["workloadEntryKey"]["asciiOrder"]
    assert "".join(sorted(order, key=names.collation_key)) == order


def test_latencies_are_rounded_half_up(vectors: Json) -> None:
    for v in vectors["latencyRounding"]:
        assert round_half_up(v["latencyMs"] * 1e6) == v["meanNs"], v


def test_environments(vectors: Json) -> None:
    pairs = []
    for v in vectors["environments"]:
        reported = TraceEnvironment.model_validate(v["input"])
        environment = _result(lambda r=reported: environment_of(r))
        given = json.dumps(v["input"])
        if environment == REFUSED:
            pairs.append((given, REFUSED if v.get("rejected") else "published", REFUSED))
            continue
        assert environment.digest == v["digest"], v["input"]
        assert environment.manifest.spec == v["spec"]
        assert environment.cuda_major == v["cudaMajor"]
        assert environment.summary == v["environmentSummary"]
    check("environments", pairs)


def test_keys(vectors: Json) -> None:
    assert trace_protocol().digest == vectors["protocol"]["digest"]
    for v in vectors["correctnessKey"]:
        assert correctness_key(v["correctness"]) == v["key"]
    for v in vectors["metricKey"]:
        assert metric_key(*v["input"]) == v["key"]
    assert metric_key("latency", "mean", "ns") == LATENCY_METRIC_KEY
    for v in vectors["comparisonKey"]:
        parts = v["parts"]
        ours = comparison_key(
            operation=parts["operationDigest"],
            workload=parts["workloadDigest"],
            protocol=parts["protocolKey"],
            environment=parts["environmentKey"],
            correctness=parts["correctnessKey"],
            metric=parts["metricKey"],
        )
        assert ours == v["key"]


def test_licenses(vectors: Json) -> None:
    check(
        "license",
        [(v["input"], v["concluded"], concluded_license(v["input"])) for v in vectors["license"]],
    )


@pytest.mark.parametrize(
    ("declared", "concluded"),
    [
        (None, None),
        ("(MIT OR Apache-2.0) AND BSD-3-Clause", "(MIT OR Apache-2.0) AND BSD-3-Clause"),
        ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 WITH LLVM-exception"),
        ("bsd-3-clause", "BSD-3-Clause"),
        ("MIT OR", None),
        ("MIT Apache-2.0", None),
        ("(MIT", None),
        ("MIT)", None),
        ("()", None),
        ("MIT (", None),
        ("see LICENSE file", None),
    ],
)
def test_licence_expressions(declared: str | None, concluded: str | None) -> None:
    assert concluded_license(declared) == concluded


def test_layout_keys(vectors: Json) -> None:
    for v in vectors["layoutKey"]:
        assert layout_key(v["input"]["shape"], v["input"].get("strides")) == v["value"]


def test_trust(vectors: Json) -> None:
    for *arguments, level in vectors["trust"]["vectors"]:
        reproduced, replications, source_available, has_raw_evidence, identity_complete = arguments
        ours = evidence_level(
            reproduced=reproduced,
            replications=replications,
            source_available=source_available,
            has_raw_evidence=has_raw_evidence,
            identity_complete=identity_complete,
        )
        assert ours == level, arguments


def test_deployability(vectors: Json) -> None:
    for source_available, installable, concluded, result in vectors["deployability"]["vectors"]:
        ours = deployability(
            source_available=source_available,
            installable=installable,
            license_concluded=concluded,
        )
        assert {"eligible": ours.eligible, "reasons": list(ours.reasons)} == result


def test_every_kind_of_vector_is_tested(vectors: Json) -> None:
    # Ranking and eligibility are computed in SQL and tested there; fixtures are the seeds' objects.
    elsewhere = {"about", "fixtures", "ranking", "eligibility"}
    here: set[str] = set()
    source = Path(__file__).read_text()
    for kind in vectors:
        if f'vectors["{kind}"]' in source:
            here.add(kind)
    assert set(vectors) - elsewhere == here
