-- implementation_results: one row per implementation and strict group that it has a run in
-- formula: ranking-v2
-- key: strict_group, implementation_digest
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column group_number: number of the group, see strict_groups
-- column implementation_digest: the implementation
-- column comparison_key: digest of what must agree for two runs to be comparable by ranking-v1;
--     null where nobody's run has a latency
-- column author: author directory of the implementation; the first by name where several have it
-- column operation_digest: operation of the group
-- column workload_digest: workload of the group
-- column gpu_product: device of the group
-- column runs: runs, skipped ones included
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column repeats: runs that are eligible
-- column exact_median_ns: median of the latencies of the eligible runs, in ns
-- column median_ns: the same, rounded half up
-- column minimum_ns: lowest of them, in ns
-- column maximum_ns: highest of them, in ns
-- column first_observed_at: time of the first eligible run (UTC)
-- column newest_run_at: time of the newest run, eligible or not (UTC)
-- note: A view over result_facts, which has numbers in place of digests.
select
    strict_groups.strict_group,
    result_facts.group_number,
    implementation_numbers.implementation_digest,
    strict_groups.comparison_key,
    result_facts.author,
    strict_groups.operation_digest,
    strict_groups.workload_digest,
    strict_groups.gpu_product,
    result_facts.runs,
    result_facts.runs_attempted,
    result_facts.runs_passed,
    result_facts.repeats,
    result_facts.exact_median_ns,
    result_facts.median_ns,
    result_facts.minimum_ns,
    result_facts.maximum_ns,
    result_facts.first_observed_at,
    result_facts.newest_run_at
from result_facts
inner join strict_groups using (group_number)
inner join implementation_numbers using (implementation_number)
