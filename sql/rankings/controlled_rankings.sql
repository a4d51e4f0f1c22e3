-- controlled_rankings: one row per eligible controlled run, ranked inside its session and group
-- formula: controlled-rankings-v1
-- key: run_digest
-- column session_id: digest of result.json
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column run_digest: the controlled run
-- column operation: name of the definition
-- column workload_uuid: identifier of the workload at the source
-- column solution: name of the solution
-- column author: author directory of the solution
-- column gpu_product: device
-- column primary_value: its median, in ns
-- column evidence_level: reported, reproducible, verified or replicated
-- column rank: 1 plus the runs of the group that are surely faster
-- column group_size: eligible runs of the session in the group
-- column difference_to_fastest_ns: mean over the rounds of its median less that of the run with
--     the lowest median, in ns
-- column difference_low_ns: lower end of the 95% interval of that difference, in ns
-- column difference_high_ns: upper end of that interval, in ns
-- column tied_with_fastest: whether that interval holds 0
-- column speedup_over_reference: median of the reference in the session divided by this median
-- column policy_version: version of the rules
-- note: Subjects of a session take turns, so that whatever slows a round slows all of it. A run is
--     surely faster than another when the 95% interval of the mean of their differences by round
--     lies below 0 (Student's t for up to ten rounds). Runs of different sessions are never ranked
--     against each other here.
-- assert rank_in_group: rank >= 1 and rank <= group_size
with taken as (
    select
        reproductions.session_id,
        runs.strict_group,
        runs.run_digest,
        runs.definition_name as operation,
        runs.workload_uuid,
        runs.solution_name as solution,
        runs.author_directory as author,
        environments.gpu_product,
        runs.primary_value,
        runs.evidence_level,
        reproductions.reference_ns
    from runs
    inner join reproductions using (run_digest)
    inner join environments using (environment_digest)
    where runs.eligible
),

rounds as (
    select
        run_digest,
        round,
        median(device_ns) as median_ns
    from rerun_samples
    where series = 'device'
    group by run_digest, round
),

-- Student's t for a two-sided 95% interval by degrees of freedom; beyond, the normal value.
differences as (
    select
        one.run_digest,
        other.run_digest as other_digest,
        avg(own.median_ns - theirs.median_ns order by own.round) as mean_ns,
        stddev_samp(own.median_ns - theirs.median_ns order by own.round)
        / sqrt(count(*)) * coalesce(
            [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262][
                (count(*) - 1)::integer
            ],
            1.96
        ) as half_ns
    from taken as one
    inner join taken as other
        on
            other.session_id = one.session_id
            and other.strict_group = one.strict_group
            and other.run_digest <> one.run_digest
    inner join rounds as own on own.run_digest = one.run_digest
    inner join rounds as theirs
        on theirs.run_digest = other.run_digest and theirs.round = own.round
    group by one.run_digest, other.run_digest
),

ranked as (
    select
        run_digest,
        1 + count(*) filter (where mean_ns - half_ns > 0) as rank
    from differences
    group by run_digest
),

placed as (
    select
        *,
        first_value(run_digest) over (
            partition by session_id, strict_group order by primary_value, run_digest
        ) as fastest_digest,
        count(*) over (partition by session_id, strict_group) as group_size
    from taken
)

select
    placed.session_id,
    placed.strict_group,
    placed.run_digest,
    placed.operation,
    placed.workload_uuid,
    placed.solution,
    placed.author,
    placed.gpu_product,
    placed.primary_value,
    placed.evidence_level,
    coalesce(ranked.rank, 1) as rank,
    placed.group_size,
    coalesce(differences.mean_ns, 0) as difference_to_fastest_ns,
    coalesce(differences.mean_ns - differences.half_ns, 0) as difference_low_ns,
    coalesce(differences.mean_ns + differences.half_ns, 0) as difference_high_ns,
    coalesce(differences.mean_ns - differences.half_ns <= 0, true) as tied_with_fastest,
    placed.reference_ns / nullif(placed.primary_value, 0) as speedup_over_reference,
    'controlled-rankings-v1' as policy_version
from placed
left join ranked using (run_digest)
left join differences
    on
        differences.run_digest = placed.run_digest
        and differences.other_digest = placed.fastest_digest
