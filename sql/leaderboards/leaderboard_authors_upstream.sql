-- leaderboard_authors_upstream: one row per author and GPU, scored as FlashInfer-Bench scores
-- formula: flashinfer-bench-author-score
-- key: gpu_product, author
-- column gpu_product: device
-- column author: author directory
-- column definitions_attempted: operations that the author has a run of and the baseline passed
-- column definitions_failed: of them, those scored 0 because a run of the author did not pass
-- column score: unweighted mean of the operations' scores; an operation's score is the mean over
--     its groups of the baseline's best latency divided by the author's
-- column wins: groups in which the author is faster than the baseline
-- column groups_compared: groups in which the author and the baseline passed
-- column formula_version: whose formula it is
-- note: For comparison with upstream's own table, not for use: one failed run makes an operation 0,
--     a mean of ratios rewards one very slow baseline, and what was not tried does not count.
--     A solution that was skipped counts as failed, as it does upstream.
with by_operation as (
    select
        gpu_product,
        author,
        operation_digest,
        avg(speedup order by speedup) as mean_ratio,
        count(*) filter (where speedup > 1) as wins,
        count(speedup) as groups_compared,
        bool_or(runs_attempted + runs_skipped > runs_passed) as has_failure
    from author_results
    where baseline_ns is not null
    group by gpu_product, author, operation_digest
)

select
    gpu_product,
    author,
    count(*) as definitions_attempted,
    count(*) filter (where has_failure) as definitions_failed,
    avg(
        case when has_failure then 0 else coalesce(mean_ratio, 0) end order by operation_digest
    ) as score,
    sum(wins)::bigint as wins,
    sum(groups_compared)::bigint as groups_compared,
    'flashinfer-bench-author-score' as formula_version
from by_operation
group by gpu_product, author
order by
    gpu_product,
    score desc,
    author
