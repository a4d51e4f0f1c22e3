-- author_facts: one row per author and strict group that the author tried, by number
-- formula: authors-v2
-- key: group_number, author
-- column group_number: the strict group, see strict_groups
-- column author: author directory
-- column runs_attempted: runs that were measured; a skipped solution is none
-- column runs_passed: runs that passed
-- column runs_skipped: runs that the harness skipped after earlier failures
-- column best_ns: lowest median of the author's implementations, in ns; null for none
-- column group_best_ns: lowest median of anyone's implementations in the group, in ns
-- column baseline_ns: lowest median of the baseline's implementations in the group, in ns
-- note: A repeat counts as in ranking-v2: an implementation is as fast as the median of its eligible
--     runs. The runs of a source that several authors have are each author's own.
-- note: People read the view author_results, which has the digests.
-- assert best_of_group: best_ns is null or best_ns >= group_best_ns
with tried as (
    select
        group_number,
        author,
        sum(runs_attempted)::bigint as runs_attempted,
        sum(runs_passed)::bigint as runs_passed,
        sum(runs - runs_attempted)::bigint as runs_skipped,
        min(median_ns) as best_ns
    from author_implementations
    group by group_number, author
),

bests as (
    select
        group_number,
        min(best_ns) as group_best_ns,
        min(best_ns) filter (where author = 'baseline') as baseline_ns
    from tried
    group by group_number
)

select
    tried.group_number,
    tried.author,
    tried.runs_attempted,
    tried.runs_passed,
    tried.runs_skipped,
    tried.best_ns,
    bests.group_best_ns,
    bests.baseline_ns
from tried
inner join bests using (group_number)
