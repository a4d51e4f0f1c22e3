-- reproductions: one row per controlled run, with what it says about the run it reproduces
-- key: run_digest, reproduces_digest
-- column run_digest: the controlled run
-- column reproduces_digest: the run as it was reported
-- column verdict: reproduced, faster, slower, failed (it had passed), passes (it had failed) or
--     other_hardware (another GPU product: times are not compared)
-- column ratio: controlled over reported time; null where they are not compared
-- column ratio_low: lower end of its 95% interval, from the interval of the controlled median
-- column ratio_high: upper end of its 95% interval
-- column reported_ns: reported primary value, in ns
-- column controlled_ns: controlled median, in ns
-- column reported_status: outcome as it was reported
-- column controlled_status: outcome of the controlled run
-- column reported_gpu: device of the reported run
-- column controlled_gpu: device of the controlled run
-- column session_id: digest of result.json; runs of one session were measured in turns
-- column runner: who measured, where that was said
-- column reason_codes: the worker's reasons for a status that is not passed
-- column note_codes: what the worker noted beside
-- column unverified_because: codes that keep the run from being verified; empty for a verified run
-- column call_convention: how the entry point was called and what decided that
-- column reference_ns: median of the reference in the same session, in ns
-- column roofline_floor_ns: least time that bytes and operations need on the device, in ns
-- column calibration_json: the machine before and after, drift and reasons, as JSON
-- column bundle_id: digest of the job bundle
-- column request_reason: why the rerun was asked for
-- column dataset: kernelindex-controlled
-- column revision: first 40 hex digits of the digest of result.json
-- column path: file of the result bundle
-- column line: 1-based number of the item in the result
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- warn another_run: run_digest <> reproduces_digest
-- warn interval_in_order: ratio is null or (ratio_low <= ratio and ratio <= ratio_high)
select
    published_reproductions.run_digest,
    coalesce(run_aliases.shown_digest, published_reproductions.reproduces_digest)
        as reproduces_digest,
    verdict,
    ratio,
    ratio_low,
    ratio_high,
    reported_ns,
    controlled_ns,
    reported_status,
    controlled_status,
    reported_gpu,
    controlled_gpu,
    session_id,
    runner,
    reason_codes,
    note_codes,
    unverified_because,
    call_convention,
    reference_ns,
    roofline_floor_ns,
    calibration_json,
    bundle_id,
    request_reason,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from published_reproductions
anti join trials using (run_digest)
left join run_aliases
    on run_aliases.run_digest = published_reproductions.reproduces_digest
