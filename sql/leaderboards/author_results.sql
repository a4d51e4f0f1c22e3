-- author_results: one row per author and strict group that the author tried
-- formula: authors-v1
-- key: strict_group, author
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column author: author directory
-- column gpu_product: device
-- column family: operation family
-- column operation_digest: operation of the group
-- column workload_digest: workload of the group
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column runs_skipped: runs that the harness skipped after earlier failures
-- column best_ns: lowest latency of the author's eligible runs, in ns; null for none
-- column group_best_ns: lowest latency of anyone's eligible runs in the group, in ns
-- column baseline_ns: lowest latency of the baseline's eligible runs in the group, in ns
-- column speedup: baseline_ns divided by best_ns; null where either is missing
-- assert best_of_group: best_ns is null or best_ns >= group_best_ns
with tried as (
    select
        strict_group,
        author,
        sum(runs_attempted)::bigint as runs_attempted,
        sum(runs_passed)::bigint as runs_passed,
        sum(runs - runs_attempted)::bigint as runs_skipped,
        min(minimum_ns) as best_ns
    from implementation_results
    group by strict_group, author
),

compared as (
    select
        *,
        min(best_ns) over (partition by strict_group) as group_best_ns,
        min(best_ns) filter (where author = 'baseline') over (partition by strict_group)
            as baseline_ns
    from tried
)

select
    compared.strict_group,
    compared.author,
    strict_groups.gpu_product,
    operations.family,
    strict_groups.operation_digest,
    strict_groups.workload_digest,
    compared.runs_attempted,
    compared.runs_passed,
    compared.runs_skipped,
    compared.best_ns,
    compared.group_best_ns,
    compared.baseline_ns,
    compared.baseline_ns / compared.best_ns as speedup
from compared
inner join strict_groups using (strict_group)
inner join operations using (operation_digest)
where strict_groups.gpu_product is not null
