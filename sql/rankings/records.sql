-- records: one row per comparison group, with the run that holds its record
-- formula: ranking-v1
-- key: comparison_key
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column run_digest: the run that holds the record
-- column primary_value: the record, in ns
-- column since: time at which it was taken (UTC)
-- column record_changes: how often the record was taken, the first time included
-- column policy_version: version of the ranking rules
-- uncompressed: comparison_key, run_digest
select
    comparison_key,
    arg_min(run_digest, primary_value) as run_digest,
    min(primary_value) as primary_value,
    arg_min(record_events.at, primary_value) as since,
    count(*) as record_changes,
    'ranking-v1' as policy_version
from record_events
group by comparison_key
