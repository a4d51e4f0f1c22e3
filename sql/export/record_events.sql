-- record_events: one row per time that a run became the fastest of its comparison group
select
    md5(concat_ws(' ', record_events.comparison_key, record_events.run_digest))::uuid::varchar
        as "id",
    record_events.comparison_key as "comparisonKey",
    try_cast(substr(record_events.run_digest, 8, 32) as uuid)::varchar as "runId",
    try_cast(substr(record_events.previous_run_digest, 8, 32) as uuid)::varchar as "previousRunId",
    record_events.policy_version as "policyVersion",
    record_events.cause as "cause",
    strftime(record_events.at, '%Y-%m-%dT%H:%M:%S.%gZ') as "at",
    strftime(runs.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt"
from record_events
inner join runs using (run_digest)
order by record_events.at, record_events.comparison_key, record_events.run_digest
