-- sources: one row per source that runs were reported by
-- Reads the database and, for the address and licence, what implementations say.
select
    md5('source ' || runs.source)::uuid::varchar as "id",
    runs.source as "slug",
    'benchmark' as "kind",
    case runs.source
        when 'flashinfer-bench' then 'FlashInfer-Bench'
        else runs.source
    end as "name",
    {
        'url': max(revisions.url),
        'license': max(implementations.license_concluded),
        'datasets': list(distinct runs.dataset order by runs.dataset)
    } as "policy",
    strftime(min(runs.published_at), '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt"
from runs
left join revisions on revisions.dataset = runs.dataset and revisions.revision = runs.revision
left join implementations on implementations.implementation_digest = runs.implementation_digest
group by runs.source
order by runs.source
