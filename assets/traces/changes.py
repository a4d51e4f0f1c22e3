"""What one revision of a dataset brought compared with another."""

from collections import defaultdict

from pydantic import BaseModel, ConfigDict

from assets.traces.snapshot import DatasetFile, DatasetSnapshot


class RenamedFile(BaseModel):
    """The same content under another path."""

    model_config = ConfigDict(frozen=True, strict=True)

    old_path: str
    new_path: str


class SnapshotChanges(BaseModel):
    """Paths by what happened to them; every path of both snapshots is in exactly one place.

    `renamed` holds pairs of a removed and an added path with the same content.
    """

    model_config = ConfigDict(frozen=True, strict=True)

    added: tuple[str, ...]
    changed: tuple[str, ...]
    renamed: tuple[RenamedFile, ...]
    removed: tuple[str, ...]
    unchanged: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changed."""
        return not (self.added or self.changed or self.renamed or self.removed)


def compare(old: DatasetSnapshot | None, new: DatasetSnapshot) -> SnapshotChanges:
    """What `new` brought; without an old snapshot every file is added."""
    before = {} if old is None else {file.path: file for file in old.files}
    after = {file.path: file for file in new.files}
    both = before.keys() & after.keys()
    renamed = _renamed(
        [before[path] for path in sorted(before.keys() - both)],
        [after[path] for path in sorted(after.keys() - both)],
    )
    old_paths = {pair.old_path for pair in renamed}
    new_paths = {pair.new_path for pair in renamed}
    return SnapshotChanges(
        added=tuple(sorted(after.keys() - both - new_paths)),
        changed=tuple(sorted(p for p in both if before[p].digest != after[p].digest)),
        renamed=tuple(renamed),
        removed=tuple(sorted(before.keys() - both - old_paths)),
        unchanged=tuple(sorted(p for p in both if before[p].digest == after[p].digest)),
    )


def _renamed(removed: list[DatasetFile], added: list[DatasetFile]) -> list[RenamedFile]:
    """Pair files of equal content, each once, those with the same name first."""
    candidates: dict[str, list[str]] = defaultdict(list)
    for file in removed:
        candidates[file.digest].append(file.path)
    pairs: list[RenamedFile] = []
    rest: list[DatasetFile] = []
    for file in added:
        same_name = [p for p in candidates[file.digest] if _name(p) == _name(file.path)]
        if same_name:
            candidates[file.digest].remove(same_name[0])
            pairs.append(RenamedFile(old_path=same_name[0], new_path=file.path))
        else:
            rest.append(file)
    for file in rest:
        if candidates[file.digest]:
            old_path = candidates[file.digest].pop(0)
            pairs.append(RenamedFile(old_path=old_path, new_path=file.path))
    return sorted(pairs, key=lambda pair: pair.old_path)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
