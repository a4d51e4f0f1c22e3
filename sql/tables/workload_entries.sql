-- workload_entries: one row per workload entry; several may share a workload
-- key: workload_digest, definition_name, external_id, input_fingerprint
-- column workload_digest: digest of the WorkloadCase manifest
-- column operation_digest: digest of the OperationSpec manifest
-- column definition_name: name of the definition
-- column external_id: identifier at the source
-- column axes_json: bound axes as JSON
-- column axes_label: bound axes as text
-- column shape_summary: shape of the first tensor
-- column dtypes: dtypes of the tensors, sorted
-- column layout_keys: layouts of the tensors, sorted
-- column input_generators: where tensor contents come from: random, safetensors
-- column input_fingerprint: digest of every input descriptor, tensor files included, which workload identity ignores
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
-- uncompressed: workload_digest, external_id, input_fingerprint
select
    workload_digest,
    operation_digest,
    definition_name,
    external_id,
    axes_json,
    axes_label,
    shape_summary,
    dtypes,
    layout_keys,
    input_generators,
    input_fingerprint,
    correctness_key,
    max_absolute_error,
    max_relative_error,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_workloads
