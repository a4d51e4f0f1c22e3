-- verified_records: one row per comparison group with a verified run, with its fastest one
-- formula: verified-records-v1
-- key: comparison_key
-- column comparison_key: digest of what must agree for two runs to be comparable
-- column operation: name of the definition
-- column workload_uuid: identifier of the workload at the source
-- column gpu_product: device
-- column run_digest: the verified run with the lowest median
-- column reproduces_digest: the reported run that it reproduces
-- column solution: its solution
-- column author: author directory of the solution
-- column primary_value: its median, in ns
-- column low_ns: lower end of the 95% interval of the median, in ns
-- column high_ns: upper end of the 95% interval of the median, in ns
-- column evidence_level: verified or replicated
-- column verified_runs: eligible verified runs in the group
-- column runners: different named runners among them
-- column observed_at: when it was measured (UTC)
-- column policy_version: version of the rules
-- assert only_verified: evidence_level in ('verified', 'replicated')
with verified as (
    select
        runs.comparison_key,
        runs.definition_name as operation,
        runs.workload_uuid,
        environments.gpu_product,
        runs.run_digest,
        reproductions.reproduces_digest,
        runs.solution_name as solution,
        runs.author_directory as author,
        runs.primary_value,
        runs.uncertainty_low_ns as low_ns,
        runs.uncertainty_high_ns as high_ns,
        runs.evidence_level,
        runs.observed_at,
        reproductions.runner
    from runs
    inner join reproductions using (run_digest)
    inner join environments using (environment_digest)
    where runs.eligible and runs.evidence_level in ('verified', 'replicated')
),

counted as (
    select
        comparison_key,
        count(distinct run_digest) as verified_runs,
        count(distinct runner) as runners
    from verified
    group by comparison_key
),

fastest as (
    select *
    from verified
    qualify row_number() over (partition by comparison_key order by primary_value, run_digest) = 1
)

select
    fastest.comparison_key,
    fastest.operation,
    fastest.workload_uuid,
    fastest.gpu_product,
    fastest.run_digest,
    fastest.reproduces_digest,
    fastest.solution,
    fastest.author,
    fastest.primary_value,
    fastest.low_ns,
    fastest.high_ns,
    fastest.evidence_level,
    counted.verified_runs,
    counted.runners,
    fastest.observed_at,
    'verified-records-v1' as policy_version
from fastest
inner join counted using (comparison_key)
