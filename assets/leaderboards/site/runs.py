"""The page of each run: everything that is known of it, with its manifest and how to cite it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from assets.answers.citations import cited
from assets.answers.lookup import Found, Kind, short
from assets.answers.run_dossier import dossier_of_row
from assets.answers.sections import Dossier
from assets.answers.stored import manifest_of
from assets.answers.values import json_value
from assets.leaderboards.site import addresses
from assets.leaderboards.site.figures import raw_samples
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader
from assets.leaderboards.site.rendering import Renderer, data_json, pretty_json, web_address

_RUNS = """
    select
        run_dossiers.* exclude (group_number, condition_number),
        published_runs.canonical_json as run_canonical_json,
        published_runs.metadata_json as run_metadata_json
    from run_dossiers
    inner join published_runs using (run_digest, publication_id)
"""

# Sections of the dossier that a page shows in its own way, with links.
_OWN_SECTIONS = ("Artifacts", "Caveats", "Replications and notes")


@dataclass(frozen=True)
class ShownField:
    """A label with its value, and where the value leads."""

    label: str
    value: str
    target: str | None = None
    outside: str | None = None


def write_run_pages(
    reader: IndexReader, renderer: Renderer, folder: SiteFolder, shown_artifacts: frozenset[str]
) -> int:
    """Write the page and the JSON of every run; returns how many there are.

    `shown_artifacts` are the sources and logs that have pages of their own.
    """
    number = 0
    for row in reader.stream(_RUNS):
        number += 1
        _write(reader, renderer, folder, row, shown_artifacts)
    for row in reader.rows("from run_aliases order by all"):
        _write_alias(renderer, folder, row)
    return number


def _write_alias(renderer: Renderer, folder: SiteFolder, alias: Mapping[str, Any]) -> None:
    """A run that is shown under another digest: its old address leads there."""
    address = addresses.run(alias["run_digest"])
    folder.write(
        address,
        renderer.page(
            address,
            "moved.html",
            what="Run",
            old=short(alias["run_digest"]),
            target=addresses.run(alias["shown_digest"]),
        ),
    )


_BASIS = {"reported": "the source says so", "reproducible": "source and log are kept"}


def _evidence(row: Mapping[str, Any], reproductions: Sequence[Mapping[str, Any]]) -> str:
    """What stands behind the evidence level, in one sentence."""
    own = next((item for item in reproductions if item["run_digest"] == row["run_digest"]), None)
    if own is not None:
        reasons = ", ".join(own["unverified_because"])
        return f"a controlled rerun, not verified: {reasons}" if reasons else "a controlled rerun"
    again = "measured again, see below" if reproductions else "not measured again"
    return f"{_BASIS.get(row['evidence_level'], 'confirmed')}; {again}"


def _write(
    reader: IndexReader,
    renderer: Renderer,
    folder: SiteFolder,
    row: dict[str, Any],
    shown_artifacts: frozenset[str],
) -> None:
    digest = row["run_digest"]
    address = addresses.run(digest)
    manifest = {
        "run": manifest_of(row.pop("run_canonical_json"), row.pop("run_metadata_json")),
        "protocol": reader.manifest(row["protocol_digest"]),
        "environment": reader.manifest(row["environment_digest"]),
    }
    found = Found(Kind.RUN, digest, row["external_id"] or "")
    dossier = dossier_of_row(found, row)
    citation = cited(found, row, reader.dataset_pages.get((row["dataset"], row["revision"])))
    reproductions = [
        {name: json_value(value) for name, value in item.items()}
        for item in reader.reproductions.get(digest, [])
    ]
    figure = raw_samples("samples", short(digest), reader.samples.get(digest, {}))
    if figure is not None:
        folder.write(addresses.beside(address, "-samples.csv"), figure.csv())
        folder.write(addresses.beside(address, "-samples.json"), figure.json())
    folder.write(
        addresses.beside(address, ".json"),
        data_json(
            {
                **dossier.as_json(),
                "reproductions": reproductions,
                "citation": citation,
                "manifest": manifest,
            }
        ),
    )
    folder.write(
        address,
        renderer.page(
            address,
            "run.html",
            run=row,
            sections=_sections(dossier, row),
            citation=citation,
            reproductions=reproductions,
            evidence=_evidence(row, reproductions),
            figure=figure,
            manifests=(
                ("run", pretty_json(manifest["run"])),
                ("protocol", reader.manifest_text(row["protocol_digest"])),
                ("environment", reader.manifest_text(row["environment_digest"])),
            ),
            shown_artifacts=shown_artifacts,
        ),
    )


def _sections(dossier: Dossier, row: Mapping[str, Any]) -> list[tuple[str, list[ShownField]]]:
    targets = {
        ("Identity", "implementation"): addresses.implementation(row["implementation_digest"]),
        ("Identity", "author"): addresses.author(row["author"] or ""),
        ("Identity", "operation"): addresses.operation(row["operation_digest"]),
        ("Identity", "workload"): addresses.group(row["strict_group"]),
        ("Identity", "comparison key"): addresses.group(row["strict_group"]),
        ("Environment", "gpu"): addresses.gpu(row["gpu_product"] or ""),
    }
    outside = {
        ("Identity", "project"): web_address(row["project_url"]),
    }
    return [
        (
            section.title,
            [
                ShownField(
                    label,
                    value,
                    targets.get((section.title, label)),
                    outside.get((section.title, label)),
                )
                for label, value in section.fields
            ],
        )
        for section in dossier.sections
        if section.title not in _OWN_SECTIONS
    ]
