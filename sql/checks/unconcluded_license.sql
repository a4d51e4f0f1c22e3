-- Licences that are claimed without a manifest that concluded them.
-- column place: table and column
-- column example: digest of the row
with concluded as (
    select
        implementation_digest,
        source_digest,
        license_concluded,
        try(canonical_json ->> '$.spec.licensing.concluded') as in_manifest
    from published_implementations
)

select
    'implementations.license_concluded' as place,
    implementation_digest as example
from concluded
where license_concluded is distinct from in_manifest
union all
select
    'artifacts.license',
    published_artifacts.artifact_digest
from published_artifacts
where
    published_artifacts.license is not null
    and not exists (
        select 1
        from concluded
        where
            concluded.source_digest = published_artifacts.artifact_digest
            and concluded.in_manifest = published_artifacts.license
    )
