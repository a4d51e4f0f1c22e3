"""The pages of kept sources and logs.

A source is shown only where a licence was concluded that lets it be shown; a site may be
published. A log is shown always: it is part of what a run says.
"""

from assets.leaderboards.site import addresses
from assets.leaderboards.site.folder import SiteFolder
from assets.leaderboards.site.index_reader import IndexReader
from assets.leaderboards.site.rendering import Renderer

# What of a long log or source stands on its page; all of it is in the text file beside.
_SHOWN_CHARACTERS = 200_000

_ARTIFACTS = """
    select artifact_digest, kind, media_type, license, size_bytes, content
    from published_artifacts
    where
        kind = 'log' and artifact_digest in (select log_digest from runs)
        or (
            kind = 'source'
            and license is not null
            and artifact_digest in (select source_digest from implementations)
        )
    qualify row_number() over (partition by artifact_digest order by publication_id) = 1
"""

_SHOWN = """
    select log_digest as digest from runs where log_digest is not null
    union
    select artifacts.artifact_digest as digest
    from artifacts
    inner join implementations on implementations.source_digest = artifacts.artifact_digest
    where artifacts.license is not null
"""

_SUBJECTS = """
    select
        source_digest as digest,
        implementation_digest,
        solution_name,
        definition_name,
        source_file_name as file_name
    from implementations
    where source_digest is not null
    order by source_digest, solution_name, implementation_digest
"""


def shown_artifacts(reader: IndexReader) -> frozenset[str]:
    """Digests of the sources and logs that have a page."""
    return frozenset(row["digest"] for row in reader.rows(_SHOWN))


def write_artifact_pages(reader: IndexReader, renderer: Renderer, folder: SiteFolder) -> int:
    """Write the page and the text of every source and log that is shown."""
    subjects: dict[str, list[dict[str, str]]] = {}
    for row in reader.rows(_SUBJECTS):
        subjects.setdefault(row["digest"], []).append(row)
    number = 0
    for row in reader.stream(_ARTIFACTS):
        number += 1
        address = addresses.artifact(row["artifact_digest"])
        content = row["content"]
        folder.write(addresses.beside(address, ".txt"), content)
        shown = content[:_SHOWN_CHARACTERS]
        folder.write(
            address,
            renderer.page(
                address,
                "artifact.html",
                artifact=row,
                subjects=subjects.get(row["artifact_digest"], []),
                lines=shown.splitlines(),
                is_cut=len(shown) < len(content),
            ),
        )
    return number
