-- author_results: one row per author and strict group that the author tried
-- formula: authors-v2
-- key: strict_group, author
-- column strict_group: digest of workload, protocol, environment, inputs and reference
-- column group_number: number of the group, see strict_groups
-- column author: author directory
-- column gpu_product: device
-- column family: operation family
-- column operation_digest: operation of the group
-- column workload_digest: workload of the group
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column runs_skipped: runs that the harness skipped after earlier failures
-- column best_ns: lowest median of the author's implementations, in ns; null for none
-- column group_best_ns: lowest median of anyone's implementations in the group, in ns
-- column baseline_ns: lowest median of the baseline's implementations in the group, in ns
-- column speedup: baseline_ns divided by best_ns; null where either is missing
-- note: A view over author_facts, which has numbers in place of digests.
select
    strict_groups.strict_group,
    author_facts.group_number,
    author_facts.author,
    strict_groups.gpu_product,
    operations.family,
    strict_groups.operation_digest,
    strict_groups.workload_digest,
    author_facts.runs_attempted,
    author_facts.runs_passed,
    author_facts.runs_skipped,
    author_facts.best_ns,
    author_facts.group_best_ns,
    author_facts.baseline_ns,
    case
        when author_facts.baseline_ns > 0 and author_facts.best_ns > 0
            then author_facts.baseline_ns / author_facts.best_ns
    end as speedup
from author_facts
inner join strict_groups using (group_number)
inner join operations using (operation_digest)
where strict_groups.gpu_product is not null
