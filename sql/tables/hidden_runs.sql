-- hidden_runs: one row per published row of a run that is not shown because another one is
-- key: run_digest, publication_id
-- column run_digest: digest of the BenchmarkRun manifest
-- column publication_id: publication that brought the row
-- column shown_digest: the run that stands for it; the run itself where another publication brought
--     it from an earlier revision
-- column definition_name: name of the definition
-- note: One line of a trace file is one run, whatever was read of it: the run of the definition as
--     it was at the earliest revision with that line, and of the solution by its earliest identity.
--     A definition that changes in place makes no new runs of old lines. Only lines of definitions
--     that ever had two states, of solutions whose identity moved and of revisions that arrived
--     late are looked at; of a dataset that is read in order that is none at all.
-- note: Roots of a dataset are worlds of their own, so that equal lines of two roots stay two.
-- assert known_shown: shown_digest is not null
with several_states as (
    select name
    from published_operations
    group by name
    having count(distinct (operation_digest, reference_digest)) > 1
),

moved_identities as (
    select distinct definition_name as name
    from published_implementations
    semi join identity_aliases using (implementation_digest)
),

read_at as (
    select distinct
        revisions.dataset,
        revisions.publication_id,
        dataset_revisions.position
    from published_revisions as revisions
    inner join dataset_revisions
        on
            dataset_revisions.dataset = revisions.dataset
            and dataset_revisions.revision = revisions.revision
),

late_publications as (
    select distinct late.publication_id
    from read_at as late
    inner join read_at as before
        on
            before.dataset = late.dataset
            and before.publication_id < late.publication_id
            and before.position > late.position
),

late_names as (
    select distinct definition_name as name
    from published_runs
    semi join late_publications using (publication_id)
),

looked_at as (
    select name from several_states
    union
    select name from moved_identities
    union
    select name from late_names
),

file_roots as (
    select
        dataset,
        revision,
        regexp_extract(path, '^((?:[^/]+/)*?)(?:definitions|workloads|solutions|traces)/', 1) as root
    from published_source_files
    where kind is not null and regexp_matches(path, '/')
),

several_roots as (
    select distinct dataset
    from file_roots
    group by dataset, revision
    having count(distinct root) > 1
),

axes as (
    select
        workloads.workload_digest,
        min(workloads.axes_json) as axes_json
    from published_workloads as workloads
    semi join looked_at on looked_at.name = workloads.definition_name
    group by workloads.workload_digest
),

contents as (
    select
        implementation_digest,
        min(content_digest) as content_digest
    from published_implementations
    semi join looked_at on looked_at.name = published_implementations.definition_name
    group by implementation_digest
),

candidates as (
    select
        runs.*,
        axes.axes_json,
        dataset_revisions.position,
        coalesce(identity_aliases.kept_digest, runs.implementation_digest) as kept_implementation,
        case
            when several_roots.dataset is null then ''
            when regexp_matches(runs.path, '(?:^|/)(?:definitions|workloads|solutions|traces)/')
                then regexp_extract(
                    runs.path, '^((?:[^/]+/)*?)(?:definitions|workloads|solutions|traces)/', 1
                )
            else regexp_extract(runs.path, '^(.*/)', 1)
        end as root
    from published_runs as runs
    semi join looked_at on looked_at.name = runs.definition_name
    left join axes using (workload_digest)
    left join identity_aliases using (implementation_digest)
    left join several_roots on several_roots.dataset = runs.dataset
    left join dataset_revisions
        on
            dataset_revisions.dataset = runs.dataset
            and dataset_revisions.revision = runs.revision
    where runs.source_native
),

-- What a line says, but for what its names stood for when it was read.
lines as (
    select
        candidates.run_digest,
        candidates.publication_id,
        candidates.definition_name,
        candidates.implementation_digest,
        candidates.kept_implementation,
        contents.content_digest,
        candidates.operation_digest,
        candidates.reference_digest,
        candidates.position,
        candidates.revision,
        candidates.parser_version,
        struct_pack(
            dataset := candidates.dataset,
            root := candidates.root,
            definition := candidates.definition_name,
            solution := candidates.solution_name,
            workload := candidates.external_id,
            axes := candidates.axes_json,
            inputs := candidates.input_fingerprint,
            correctness := candidates.correctness_key,
            environment := candidates.environment_digest,
            at := candidates.raw_timestamp,
            status := candidates.raw_status,
            latency_ms := candidates.latency_ms,
            reference_latency_ms := candidates.reference_latency_ms,
            speedup_factor := candidates.speedup_factor,
            absolute_error := candidates.max_absolute_error,
            relative_error := candidates.max_relative_error,
            extra := candidates.correctness_extra_json,
            log := candidates.log_digest
        ) as line
    from candidates
    left join contents
        on contents.implementation_digest = candidates.kept_implementation
),

first_rows as (
    select *
    from lines
    qualify
        row_number() over (
            partition by run_digest order by position nulls last, publication_id
        ) = 1
),

judged as (
    select
        *,
        first_value((operation_digest, reference_digest)) over (
            partition by line
            order by
                position nulls last,
                parser_version desc,
                revision,
                operation_digest,
                reference_digest
        ) is not distinct from (operation_digest, reference_digest) as is_of_its_time,
        first_value(run_digest) over (
            partition by line, operation_digest, reference_digest, kept_implementation
            order by
                (implementation_digest = kept_implementation) desc,
                position nulls last,
                run_digest
        ) as first_digest
    from first_rows
),

-- A run of a later definition stands for that of the same solution, if it was ever one of the
-- definition of its time.
preferred as (
    select
        *,
        first_value(first_digest) over same_solution as digest_of_solution,
        first_value(is_of_its_time) over same_solution as solution_is_of_its_time,
        first_value(first_digest) over (
            partition by line order by is_of_its_time desc, position nulls last, run_digest
        ) as digest_of_line
    from judged
    window same_solution as (
        partition by line, content_digest
        order by is_of_its_time desc, position nulls last, run_digest
    )
),

shown as (
    select
        run_digest,
        publication_id,
        case
            when is_of_its_time then first_digest
            when solution_is_of_its_time then digest_of_solution
            else digest_of_line
        end as shown_digest
    from preferred
)

select
    lines.run_digest,
    lines.publication_id,
    shown.shown_digest,
    lines.definition_name
from lines
inner join shown using (run_digest)
where shown.shown_digest <> lines.run_digest or shown.publication_id <> lines.publication_id
