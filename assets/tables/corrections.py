"""Corrections: retraction, supersession and attestation, each who, when, why and on what evidence.

One JSON object a line (`docs/corrections.md` describes the fields). A correction is appended and
never taken back; it changes what is ranked, never the evidence. What follows from it for ranks
and records is written in `sql/rankings/`.
"""

import json
import shutil
from collections.abc import Iterable
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Self

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from assets.manifests.canonical import canonical_json, sha256_digest
from assets.manifests.rejections import json_path
from assets.tables.contracts import STAGED
from assets.tables.database import published_rows
from assets.tables.errors import WarehouseError
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import Publication, Warehouse

CORRECTION = "correction"
CORRECTION_TABLE = "corrections"
FORMAT_VERSION = "corrections-v1"
_MAX_TEXT = 2000

Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=_MAX_TEXT)]
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=_MAX_TEXT)]


class Action(StrEnum):
    """What a correction does."""

    RETRACT = "retract"
    SUPERSEDE = "supersede"
    ATTEST = "attest"


class TargetKind(StrEnum):
    """What can be corrected."""

    RUN = "run"
    IMPLEMENTATION = "implementation"


class Correction(BaseModel):
    """One correction as its author writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    action: Action
    target: Digest
    target_kind: TargetKind | None = None
    replacement: Digest | None = None
    author: Text
    reason: Text
    evidence_url: Url
    effective_at: AwareDatetime | None = Field(
        default=None, description="time from which it holds; default: when it is published"
    )

    @model_validator(mode="after")
    def _replacement_belongs_to_supersession(self) -> Self:
        if self.action is Action.SUPERSEDE and self.replacement is None:
            raise ValueError("a supersession needs `replacement`, the digest that takes its place")
        if self.action is not Action.SUPERSEDE and self.replacement is not None:
            raise ValueError("`replacement` is only for a supersession")
        if self.replacement == self.target:
            raise ValueError("`replacement` is the target itself")
        return self

    def identifier(self, kind: TargetKind) -> str:
        """Digest of the content; its time is no part of it, so saying it twice adds nothing."""
        return sha256_digest(
            canonical_json(
                {
                    "action": str(self.action),
                    "targetKind": str(kind),
                    "target": self.target,
                    "replacement": self.replacement,
                    "author": self.author,
                    "reason": self.reason,
                    "evidenceUrl": self.evidence_url,
                }
            )
        )


class LocatedCorrection(BaseModel):
    """A correction and the line of the file that it stands on."""

    model_config = ConfigDict(frozen=True)

    correction: Correction
    line: int


def parse_corrections(data: bytes, name: str) -> list[LocatedCorrection]:
    """Read a file of corrections, one JSON object a line; empty lines are skipped.

    Raises:
        WarehouseError: names the file, the line, the field and what is wrong with it.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise WarehouseError(f"{name}: not UTF-8 text ({error.reason})") from error
    found: list[LocatedCorrection] = []
    # Only a line feed ends a line: JSON text may hold other separators.
    for line, content in enumerate(text.split("\n"), start=1):
        if not content.strip():
            continue
        try:
            correction = Correction.model_validate_json(content)
        except ValidationError as error:
            problem = error.errors(include_url=False)[0]
            field = json_path(problem["loc"]).removeprefix("$").removeprefix(".")
            where = f"{field}: " if field else ""
            message = problem["msg"].removeprefix("Value error, ")
            raise WarehouseError(f"{name}:{line}: {where}{message}; nothing was published") from (
                error
            )
        found.append(LocatedCorrection(correction=correction, line=line))
    if not found:
        raise WarehouseError(f"{name}: no correction in it; one JSON object a line is expected")
    return found


def to_jsonl(corrections: Iterable[Correction]) -> bytes:
    """Corrections in the format that `parse_corrections` reads."""
    lines = [
        json.dumps(correction.model_dump(mode="json", exclude_none=True), ensure_ascii=False)
        for correction in corrections
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def publish_corrections(
    warehouse: Warehouse, located: list[LocatedCorrection], name: str
) -> Publication | None:
    """Check and publish corrections; None if every one of them is already known.

    They are kept in the raw store as well, from where the publication can be made again. `name`
    is the file that messages name.

    Raises:
        WarehouseError: a digest that is not published, a circle of supersessions.
    """
    kinds = _check(warehouse, located, name)
    now = datetime.now(UTC).replace(microsecond=0)
    dated = [_dated(item.correction, now) for item in located]
    raw_digest = warehouse.store.put(to_jsonl(dated))
    staging = warehouse.staging(f"corrections-{raw_digest[7:23]}")
    try:
        stage_corrections(dated, kinds, staging, raw_digest)
        return publish(
            warehouse, staging, PublicationRequest(kind=CORRECTION, snapshot_id=raw_digest)
        )
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _dated(correction: Correction, now: datetime) -> Correction:
    at = (correction.effective_at or now).astimezone(UTC)
    return correction.model_copy(update={"effective_at": at})


def stage_corrections(
    corrections: list[Correction], kinds: dict[str, TargetKind], staging: Path, raw_digest: str
) -> None:
    """Write corrections as a staged part; `kinds` says what each target is."""
    rows = []
    for line, correction in enumerate(corrections, start=1):
        kind = kinds[correction.target]
        at = correction.effective_at
        rows.append(
            {
                "correction_id": correction.identifier(kind),
                "action": str(correction.action),
                "target_kind": str(kind),
                "target_digest": correction.target,
                "replacement_digest": correction.replacement,
                "author": correction.author,
                "reason": correction.reason,
                "evidence_url": correction.evidence_url,
                "effective_at": at.replace(tzinfo=None) if at else None,
                "dataset": "",
                "revision": None,
                "path": f"{raw_digest[7:23]}.jsonl",
                "line": line,
                "parser_version": FORMAT_VERSION,
            }
        )
    folder = staging / CORRECTION_TABLE
    folder.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist(rows, schema=STAGED[CORRECTION_TABLE])
    pq.write_table(table, folder / "corrections.parquet", compression="zstd")


def kinds_of(warehouse: Warehouse, digests: Iterable[str]) -> dict[str, TargetKind]:
    """What each digest is; one that is no published run or implementation is absent."""
    wanted = sorted(set(digests))
    found: dict[str, TargetKind] = {}
    with warehouse.connect() as connection:
        for kind in TargetKind:
            rows = published_rows(connection, warehouse, f"{kind}s")
            column = f"{kind}_digest"
            rows.create_view(f"all_{kind}s")
            matching = connection.execute(
                f"select distinct {column} from all_{kind}s where list_contains($wanted, {column})",
                {"wanted": wanted},
            ).fetchall()
            found |= {digest: kind for (digest,) in matching}
    return found


def _check(
    warehouse: Warehouse, located: list[LocatedCorrection], name: str
) -> dict[str, TargetKind]:
    kinds = kinds_of(
        warehouse,
        (
            digest
            for item in located
            for digest in (item.correction.target, item.correction.replacement)
            if digest is not None
        ),
    )
    replaced = _replacements(warehouse)
    for item in located:
        correction, where = item.correction, f"{name}:{item.line}"
        kind = kinds.get(correction.target)
        if kind is None:
            raise WarehouseError(
                f"{where}: target: no published run or implementation is {correction.target}; "
                "nothing was published"
            )
        if correction.target_kind not in (None, kind):
            raise WarehouseError(
                f"{where}: target_kind: {correction.target} is of kind {kind}, not "
                f"{correction.target_kind}; nothing was published"
            )
        if correction.replacement is not None:
            other = kinds.get(correction.replacement)
            if other is not kind:
                what = f"is of kind {other}" if other else "is not published"
                raise WarehouseError(
                    f"{where}: replacement: {correction.replacement} {what}; a {kind} is "
                    f"superseded by a published {kind}; nothing was published"
                )
            replaced[correction.target] = correction.replacement
            if circle := _circle(replaced, correction.target):
                raise WarehouseError(
                    f"{where}: replacement: supersessions would go in a circle: "
                    f"{' -> '.join(digest[:19] for digest in circle)}; nothing was published"
                )
    return kinds


def _replacements(warehouse: Warehouse) -> dict[str, str]:
    with warehouse.connect() as connection:
        rows = published_rows(connection, warehouse, CORRECTION_TABLE)
        return dict(
            rows.filter("action = 'supersede'")
            .project("target_digest, replacement_digest")
            .fetchall()
        )


def _circle(replaced: dict[str, str], start: str) -> list[str]:
    way = [start]
    while (following := replaced.get(way[-1])) is not None:
        if following in way:
            return [*way, following]
        way.append(following)
    return []
