-- workloads: one row per WorkloadCase
-- key: workload_digest
-- column workload_digest: digest of the WorkloadCase manifest
-- column operation_digest: digest of the OperationSpec manifest
-- column axes_json: bound axes as JSON
-- column axes_label: bound axes as text
-- column shape_summary: shape of the first tensor
-- column dtypes: dtypes of the tensors, sorted
-- column layout_keys: layouts of the tensors, sorted
-- column input_generators: where tensor contents come from: random, safetensors
-- column correctness_key: digest of the correctness rules
-- column max_absolute_error: largest absolute error
-- column max_relative_error: largest relative error
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- column external_ids: identifiers of the entries that are this workload, sorted
-- column input_fingerprints: their input fingerprints; more than one means that identity hides a difference
-- uncompressed: workload_digest
with named as (
    select
        workload_digest,
        list(distinct external_id order by external_id) as external_ids,
        list(distinct input_fingerprint order by input_fingerprint) as input_fingerprints
    from workload_entries
    group by all
),

first_document as (
    select *
    from workload_entries
    qualify row_number() over (partition by workload_digest order by dataset, path, line) = 1
)

select
    first_document.workload_digest,
    first_document.operation_digest,
    first_document.axes_json,
    first_document.axes_label,
    first_document.shape_summary,
    first_document.dtypes,
    first_document.layout_keys,
    first_document.input_generators,
    first_document.correctness_key,
    first_document.max_absolute_error,
    first_document.max_relative_error,
    first_document.dataset,
    first_document.revision,
    first_document.path,
    first_document.line,
    first_document.parser_version,
    first_document.publication_id,
    first_document.published_at,
    named.external_ids,
    named.input_fingerprints
from first_document
inner join named using (workload_digest)
