-- artifacts: one row per kept source or log, without its content; reference sources are none of
-- the public index's
select
    try_cast(substr(artifacts.artifact_digest, 8, 32) as uuid)::varchar as "id",
    artifacts.artifact_digest as "contentDigest",
    artifacts.kind as "kind",
    artifacts.media_type as "mediaType",
    artifacts.size_bytes as "sizeBytes",
    'inline' as "storage",
    max(revisions.url) as "uri",
    artifacts.license as "license",
    strftime(artifacts.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt"
from artifacts
left join revisions
    on revisions.dataset = artifacts.dataset and revisions.revision = artifacts.revision
where artifacts.kind <> 'reference'
group by all
order by artifacts.artifact_digest
