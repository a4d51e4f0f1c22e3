"""How to cite what the index holds."""

from datetime import UTC, datetime

import duckdb

from assets.answers.lookup import Found
from assets.answers.sections import Row, row_of


def citation(connection: duckdb.DuckDBPyConnection, found: Found, at: datetime) -> dict[str, str]:
    """How to cite one thing: what it is, its digest, where it is from, and when it was looked at.

    `text` is the citation in one sentence.
    """
    row = row_of(connection, f"{found.kind}s", f"{found.kind}_digest", found.digest)
    pages = connection.execute(
        "select max(url) from revisions where dataset = ? and revision = ?",
        [row["dataset"], row["revision"]],
    ).fetchall()
    accessed = f"{at.astimezone(UTC):%Y-%m-%d}"
    parts = cited(found, row, pages[0][0])
    text = parts.pop("text")
    return {**parts, "accessed": accessed, "text": f"{text} (accessed {accessed})."}


def cited(found: Found, row: Row, dataset_page: str | None) -> dict[str, str]:
    """What a citation says whenever it is read: all but the day, and `text` without a full stop.

    `row` states dataset, revision, path and line; `dataset_page` is where the dataset is shown.
    """
    place = f"{row['dataset']}@{row['revision']}"
    if row["path"]:
        place += f", {row['path']}" + (f" line {row['line']}" if row["line"] else "")
    parts = {
        "what": f"{found.kind} {found.name}".strip(),
        "digest": found.digest,
        "source": place,
    }
    url = _permalink(dataset_page, row)
    if url:
        parts["url"] = url
    parts["text"] = f"KernelIndex {parts['what']}, {found.digest}, from {place}"
    if url:
        parts["text"] += f", {url}"
    return parts


def _permalink(page: str | None, row: Row) -> str | None:
    if not page or not row["path"]:
        return None
    line = f"#L{row['line']}" if row["line"] else ""
    return f"{page}/blob/{row['revision']}/{row['path']}{line}"
