-- projects: one row per SoftwareProject
select
    try_cast(substr(projects.project_digest, 8, 32) as uuid)::varchar as "id",
    projects.slug as "slug",
    projects.name as "name",
    projects.normalized_name as "normalizedName",
    projects.canonical_url as "canonicalUrl",
    null as "licenseExpression",
    manifests.canonical_json as "manifest",
    manifests.metadata_json as "manifest.metadata",
    strftime(projects.published_at, '%Y-%m-%dT%H:%M:%S.%gZ') as "createdAt"
from projects
inner join manifests on manifests.digest = projects.project_digest
order by projects.slug, projects.project_digest
