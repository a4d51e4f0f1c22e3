-- definitions: one row per definition document; several may share an operation
-- key: operation_digest, name, reference_digest
-- column operation_digest: digest of the OperationSpec manifest
-- column slug: URL-safe name
-- column name: name
-- column family: operation family, e.g. gqa-paged
-- column description: what the dataset says of it
-- column tags: taxonomy tags
-- column aliases: other names, in lower case
-- column input_dtypes: dtypes of the inputs, sorted
-- column output_dtypes: dtypes of the outputs, sorted
-- column constant_axes_json: constant axes with their values, as JSON
-- column variable_axes: names of the axes that a workload binds, sorted
-- column reference_digest: digest of the reference source, which operation identity ignores
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    published_operations.operation_digest,
    published_operations.slug,
    published_operations.name,
    published_operations.family,
    published_operations.description,
    published_operations.tags,
    published_operations.aliases,
    published_operations.input_dtypes,
    published_operations.output_dtypes,
    published_operations.constant_axes_json,
    published_operations.variable_axes,
    published_operations.reference_digest,
    published_operations.dataset,
    published_operations.revision,
    published_operations.path,
    published_operations.line,
    published_operations.parser_version,
    published_operations.publication_id,
    published_operations.published_at
from published_operations
left join dataset_revisions
    on
        dataset_revisions.dataset = published_operations.dataset
        and dataset_revisions.revision = published_operations.revision
-- An earlier revision that arrived late brought the document of a definition once more.
qualify
    row_number() over (
        partition by
            published_operations.operation_digest,
            published_operations.name,
            published_operations.reference_digest
        order by dataset_revisions.position nulls last, published_operations.publication_id
    ) = 1
