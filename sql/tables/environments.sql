-- environments: one row per ExecutionEnvironment, with the device as published and as it is
-- key: environment_digest
-- column environment_digest: digest of the ExecutionEnvironment manifest
-- column hardware_vendor: vendor as published
-- column hardware_product: device as published
-- column hardware_architecture: architecture as published
-- column gpu_vendor: vendor, corrected
-- column gpu_product: device, corrected
-- column gpu_architecture: architecture, corrected; unknown where we do not know
-- column cuda_toolkit: CUDA version
-- column cuda_major: CUDA major version
-- column driver: driver version
-- column framework_name: tensor library
-- column framework_version: version of the tensor library
-- column libraries_json: other libraries with versions, as JSON
-- column summary: software in one line
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
select
    environment_digest,
    hardware_vendor,
    hardware_product,
    hardware_architecture,
    gpu_vendor,
    gpu_product,
    gpu_architecture,
    cuda_toolkit,
    cuda_major,
    driver,
    framework_name,
    framework_version,
    libraries_json,
    summary,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_environments
-- Without those that only trials were made with: no run of another table names them.
where
    environment_digest not in (
        select environment_digest from trials where environment_digest is not null
    )
    or environment_digest in (select environment_digest from run_conditions)
