"""A warehouse with everything that can be damaged in it, and ways to damage it at random."""

import json
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from assets.tables.contracts import STAGED
from assets.tables.corrections import parse_corrections, publish_corrections
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import PUBLICATION_RECORD, Publication, Warehouse


def publish_samples(warehouse: Warehouse, session: str = "f" * 40) -> Publication:
    """A publication as a controlled rerun makes it: no file of a dataset is behind it."""
    staging = warehouse.staging(f"rerun-{session}")
    (staging / "rerun_samples").mkdir(parents=True)
    row = dict.fromkeys(STAGED["rerun_samples"].names)
    rows = [
        {**row, "run_digest": session, "series": "device", "call": call, "device_ns": 1000 + call}
        for call in range(50)
    ]
    table = pa.Table.from_pylist(rows, schema=STAGED["rerun_samples"])
    pq.write_table(table, staging / "rerun_samples" / "rerun.parquet")
    request = PublicationRequest(kind="rerun", dataset="reruns", revision=session)
    try:
        record = publish(warehouse, staging, request)
    finally:
        shutil.rmtree(staging)
    assert record is not None
    return record


def publish_retraction(warehouse: Warehouse) -> Publication:
    """A publication of a correction."""
    [path, *_] = warehouse.own_files("runs")[1:]
    target = pq.read_table(path)["run_digest"][0].as_py()
    correction = {
        "action": "retract",
        "target": target,
        "author": "A. Reader",
        "reason": "throttled",
        "evidence_url": "https://example.org/log",
    }
    located = parse_corrections(json.dumps(correction).encode(), "c.jsonl")
    record = publish_corrections(warehouse, located, "c.jsonl")
    assert record is not None
    return record


def rows_by_publication(warehouse: Warehouse) -> dict[tuple[str, str], int]:
    """How many rows of each table readers see, by the publication that brought them."""
    from assets.tables.database import published_rows

    found: dict[tuple[str, str], int] = {}
    with warehouse.connect() as connection:
        for table in STAGED:
            rows = published_rows(connection, warehouse, table)
            counted = rows.aggregate("publication_id, count(*)", "publication_id").fetchall()
            found |= {(table, str(name)): int(number) for name, number in counted}
    return found


def flip_a_byte(path: Path, rng: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    path.write_bytes(data)


def truncate(path: Path, rng: random.Random) -> None:
    path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)])


def remove(path: Path, _: random.Random) -> None:
    path.unlink()


def replace_by_link(path: Path, _: random.Random) -> None:
    elsewhere = path.parent.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def replace_by_folder(path: Path, _: random.Random) -> None:
    path.unlink()
    path.mkdir()
    (path / "something").write_text("of a person")


def give_other_content(path: Path, _: random.Random) -> None:
    path.write_bytes(b"something else")


DAMAGES: tuple[Callable[[Path, random.Random], None], ...] = (
    flip_a_byte,
    truncate,
    remove,
    replace_by_link,
    replace_by_folder,
    give_other_content,
)


def remove_folder(path: Path) -> None:
    shutil.rmtree(path)


def move_behind_a_link(path: Path) -> None:
    elsewhere = path.parent.parent / f"elsewhere-{path.name}"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def double(path: Path) -> None:
    name = path.name
    other = name.replace("0000000", "0000001", 1) if "=" in name else "00000077"
    shutil.copytree(path, path.parent / other, dirs_exist_ok=True)


def double_without_record(path: Path) -> None:
    double(path)
    for record in path.parent.glob("*00000[1-9]*/*.json"):
        if record.name == PUBLICATION_RECORD and not record.parent.samefile(path):
            record.unlink()


FOLDER_DAMAGES: tuple[Callable[[Path], None], ...] = (
    remove_folder,
    move_behind_a_link,
    double,
)


def damage(warehouse: Warehouse, rng: random.Random, *, raw: bool) -> list[str]:
    """Damage one to three things; `raw` says whether raw bytes may be among them."""
    done: list[str] = []
    for _ in range(rng.randint(1, 3)):
        folders = [
            path
            for parent in (warehouse.publications_folder, warehouse.generations_folder)
            if parent.is_dir()
            for path in sorted(parent.iterdir())
            if path.is_dir() and not path.is_symlink()
        ]
        chosen = [folder for folder in folders if rng.random() < 0.4] or folders[-1:]
        files = [path for folder in chosen for path in sorted(folder.iterdir()) if path.is_file()]
        if rng.random() < 0.2:
            files = [path for path in (warehouse.root / "chain").iterdir() if path.is_file()]
        if raw and rng.random() < 0.4:
            places = [warehouse.root / "raw", warehouse.snapshots]
            files = [
                path
                for place in places
                for path in sorted(place.rglob("*.*"))
                if path.is_file() and path.name != "blobs.index"
            ]
        files = [path for path in files if path.stat().st_size]
        if folders and rng.random() < 0.3:
            folder, how = rng.choice(folders), rng.choice(FOLDER_DAMAGES)
            how(folder)
            done.append(f"{how.__name__} {folder.name}")
        elif files:
            path, change = rng.choice(files), rng.choice(DAMAGES)
            change(path, rng)
            done.append(f"{change.__name__} {path.parent.name}/{path.name}")
    return done
