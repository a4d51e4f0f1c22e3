-- rerun_samples: one row per timed call of a controlled run, and of the reference beside it
-- key: run_digest, series, call
-- column run_digest: the controlled run
-- column series: device or wall, of the solution; reference_device or reference_wall
-- column call: 0-based number of the call in its series
-- column round: 0-based round; subjects of one session take turns in rounds of random order
-- column seed: seed of the inputs of the call
-- column device_ns: time between the device events around the call, in ns
-- column wall_ns: time of the host's clock around call and synchronization, in ns; null in device
--     series
-- column dataset: kernelindex-controlled
-- column revision: first 40 hex digits of the digest of result.json
-- column path: file of the result bundle
-- column line: 1-based number of the item in the result
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- warn measured: device_ns >= 0
select
    run_digest,
    series,
    call,
    round,
    seed,
    device_ns,
    wall_ns,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_rerun_samples
anti join trials using (run_digest)
