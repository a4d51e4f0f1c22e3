-- operations: one row per OperationSpec, named by its first definition
-- key: operation_digest
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
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- column definition_names: names of the definitions that are this operation, sorted
-- column reference_digests: digests of their reference sources; more than one means that identity hides a difference
with named as (
    select
        operation_digest,
        list(distinct name order by name) as definition_names,
        list(distinct reference_digest order by reference_digest) as reference_digests
    from definitions
    group by all
),

first_document as (
    select *
    from definitions
    qualify row_number() over (partition by operation_digest order by dataset, path, line) = 1
)

select
    first_document.operation_digest,
    first_document.slug,
    first_document.name,
    first_document.family,
    first_document.description,
    first_document.tags,
    first_document.aliases,
    first_document.input_dtypes,
    first_document.output_dtypes,
    first_document.constant_axes_json,
    first_document.variable_axes,
    first_document.dataset,
    first_document.revision,
    first_document.path,
    first_document.line,
    first_document.parser_version,
    first_document.publication_id,
    first_document.published_at,
    named.definition_names,
    named.reference_digests
from first_document
inner join named using (operation_digest)
