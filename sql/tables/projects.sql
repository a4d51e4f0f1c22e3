-- projects: one row per SoftwareProject
-- key: project_digest
-- column project_digest: digest of the SoftwareProject manifest
-- column slug: URL-safe name
-- column name: name
-- column normalized_name: name in lower case
-- column kind: kind
-- column canonical_url: where the project lives, null where the dataset has no address
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    project_digest,
    slug,
    name,
    normalized_name,
    kind,
    canonical_url,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_projects
