-- fast_p_curves: one row per author, GPU, operation family (or all) and threshold p
-- formula: fast-p-v2
-- key: gpu_product, family, author, p
-- column gpu_product: device
-- column family: operation family; `all` for the rows over all of them
-- column author: author directory
-- column p: threshold of the speed-up over the baseline
-- column fast_p: share of the strict groups in which the author's best implementation is at least
--     p times as fast as the baseline's, medians against medians, 0 to 1; a group that the author
--     failed counts as 0
-- column groups_compared: the denominator: strict groups that the author tried and the baseline passed
-- column groups_of_baseline: strict groups that the baseline passed, tried by the author or not
-- column coverage: groups compared per group of the baseline, 0 to 1
-- column formula_version: version of this formula
-- note: The unit is a strict group of an author: one workload with its inputs, on one device. The
--     curve of FlashInfer-Bench has another: it counts for each solution the workloads that agree
--     in their axes. So the two curves differ, also where every latency is the same.
-- assert share: fast_p between 0 and 1 and coverage between 0 and 1
with thresholds as (
    select [0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0]::double[] as ascending
),

curve as (
    select
        unnest(ascending) as p,
        unnest(range(1, len(ascending) + 1)) as place
    from thresholds
),

against_baseline as (
    select *
    from author_results
    where baseline_ns is not null
),

available as (
    select
        gpu_product,
        case when grouping(family) = 0 then family else 'all' end as family,
        count(distinct group_number) as groups_of_baseline
    from against_baseline
    group by grouping sets ((gpu_product, family), (gpu_product))
),

-- By how many thresholds a group reaches, so that it is looked at once and not once for each.
counted as (
    select
        against_baseline.gpu_product,
        against_baseline.family,
        against_baseline.author,
        len(list_filter(thresholds.ascending, lambda p: against_baseline.speedup >= p)) as reached,
        count(*) as groups
    from against_baseline
    cross join thresholds
    where against_baseline.runs_attempted > 0
    group by all
),

shares as (
    select
        counted.gpu_product,
        case when grouping(counted.family) = 0 then counted.family else 'all' end as family,
        counted.author,
        curve.p,
        sum(case when counted.reached >= curve.place then counted.groups else 0 end)::bigint
            as groups_reached,
        sum(counted.groups)::bigint as groups_compared
    from counted
    cross join curve
    group by
        grouping sets (
            (counted.gpu_product, counted.family, counted.author, curve.p),
            (counted.gpu_product, counted.author, curve.p)
        )
)

select
    shares.gpu_product,
    shares.family,
    shares.author,
    shares.p,
    shares.groups_reached / shares.groups_compared as fast_p,
    shares.groups_compared,
    available.groups_of_baseline,
    shares.groups_compared / available.groups_of_baseline as coverage,
    'fast-p-v2' as formula_version
from shares
inner join available using (gpu_product, family)
order by
    shares.gpu_product,
    shares.family,
    shares.author,
    shares.p
