"""What only the publications hold: canonical manifests and the content of artifacts."""

import json
from dataclasses import dataclass
from typing import Any

import duckdb

from assets.answers.errors import NoAnswerError
from assets.answers.lookup import Found, Kind, short
from assets.manifests.canonical import API_VERSION
from assets.tables.database import published_rows
from assets.tables.leases import reading
from assets.tables.warehouse import Warehouse

Manifest = dict[str, Any]

# A run's manifest is shown with those of its protocol and environment, as its public page does.
_SHOWN_WITH_RUN = ((Kind.PROTOCOL, "protocolDigest"), (Kind.ENVIRONMENT, "environmentDigest"))


@dataclass(frozen=True)
class Artifact:
    """A kept source or log."""

    digest: str
    kind: str
    media_type: str
    license: str | None
    content: str


def canonical_manifest(
    warehouse: Warehouse, found: Found, publication_id: str | None = None
) -> Manifest:
    """The manifest of one thing: `{apiVersion, kind, metadata, spec}`.

    `publication_id` says which publication brought it, where that is known.

    Raises:
        NoAnswerError: it is in no published file.
        WarehouseError: publications that cannot be read.
    """
    columns = ("canonical_json", "metadata_json")
    row = _first(warehouse, f"{found.kind}s", found.digest, columns, publication_id)
    if row is None:
        raise NoAnswerError(f"{found.kind} {short(found.digest)}: no publication holds it")
    return manifest_of(row[0], row[1])


def manifest_of(canonical_json: str, metadata_json: str | None) -> Manifest:
    """A manifest as it is shown: its identity body with the editorial part."""
    body = json.loads(canonical_json)
    return {
        "apiVersion": body.get("apiVersion", API_VERSION),
        "kind": body["kind"],
        "metadata": json.loads(metadata_json) if metadata_json else {},
        "spec": body["spec"],
    }


def shown_manifest(
    warehouse: Warehouse, found: Found, publication_id: str | None = None
) -> Manifest:
    """The manifest as the public page shows it: a run's with its protocol and environment.

    Raises:
        NoAnswerError: it is in no published file.
        WarehouseError: publications that cannot be read.
    """
    manifest = canonical_manifest(warehouse, found, publication_id)
    if found.kind is not Kind.RUN:
        return manifest
    others = {
        str(kind): canonical_manifest(warehouse, Found(kind, manifest["spec"][field], ""))
        for kind, field in _SHOWN_WITH_RUN
    }
    return {"run": manifest, **others}


def artifact(warehouse: Warehouse, digest: str) -> Artifact:
    """A kept source or log with its content.

    Raises:
        NoAnswerError: it is in no published file.
        WarehouseError: publications that cannot be read.
    """
    columns = ("kind", "media_type", "license", "content")
    row = _first(warehouse, "artifacts", digest, columns, None)
    if row is None:
        raise NoAnswerError(f"artifact {short(digest)}: no publication holds it")
    return Artifact(digest, *row)


def _first(
    warehouse: Warehouse,
    table: str,
    digest: str,
    columns: tuple[str, ...],
    publication_id: str | None,
) -> tuple[Any, ...] | None:
    key = duckdb.ColumnExpression(f"{table.removesuffix('s')}_digest")
    wanted = key == duckdb.ConstantExpression(digest)
    if publication_id is not None:
        publication = duckdb.ColumnExpression("publication_id")
        wanted = wanted & (publication == duckdb.ConstantExpression(publication_id))
    with reading(warehouse), warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, table).filter(wanted)
        found = rows.project(", ".join((*columns, "publication_id"))).fetchall()
    first = min(found, key=lambda row: row[-1], default=None)
    return first[:-1] if first is not None else None
