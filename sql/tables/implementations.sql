-- implementations: one row per ImplementationRevision, named by its first solution file that is still there
-- key: implementation_digest
-- column implementation_digest: digest of the ImplementationRevision manifest
-- column operation_digest: digest of the OperationSpec manifest
-- column project_digest: digest of the SoftwareProject manifest
-- column project_slug: slug of the project
-- column slug: URL-safe name
-- column solution_name: name of the solution
-- column definition_name: name of the definition
-- column author: author that the solution names
-- column author_directory: author directory that the file lies in
-- column role: role as the public index labels it: baseline, llm-generated or null
-- column actual_role: role as we see it: baseline, human or agent
-- column language: language token: triton, cuda, python, ...
-- column entry_symbol: function that is called
-- column target_architectures: architectures that the solution names
-- column target_products: devices that the solution names
-- column dependencies: packages that the solution needs
-- column destination_passing_style: whether outputs are passed in; null where the solution does not say
-- column license_declared: licence expression that the dataset declares
-- column license_concluded: licence expression that was concluded, null for none
-- column source_available: whether the source can be had
-- column source_digest: digest of the kept main source, see artifacts
-- column source_file_name: name of the main source file
-- column source_size_bytes: size of the main source in bytes
-- column source_revision: dataset revision in the identity of the implementation
-- column content_digest: digest of the solution's content, without regard to spacing
-- column document_digest: digest of the document's bytes
-- column dataset: dataset that the row came from, e.g. flashinfer-ai/flashinfer-trace
-- column revision: dataset revision (40 hex) at which the row was first published
-- column path: file inside the dataset; empty for what comes from no file
-- column line: 1-based line of the file on which the document starts
-- column parser_version: version of the reading rules that made the row
-- column publication_id: publication that brought the row
-- column published_at: time of that publication (UTC)
-- column solution_names: names of the solutions that are this implementation, sorted
-- uncompressed: implementation_digest, source_digest, content_digest, document_digest
with named as (
    select
        implementation_digest,
        list(distinct solution_name order by solution_name) as solution_names
    from solutions
    group by all
),

first_document as (
    select solutions.*
    from solutions
    left join file_states
        on file_states.dataset = solutions.dataset and file_states.path = solutions.path
    qualify
        row_number() over (
            partition by solutions.implementation_digest
            order by
                coalesce(file_states.removed, false),
                solutions.dataset,
                solutions.path,
                solutions.line
        ) = 1
)

select
    first_document.implementation_digest,
    first_document.operation_digest,
    first_document.project_digest,
    first_document.project_slug,
    first_document.slug,
    first_document.solution_name,
    first_document.definition_name,
    first_document.author,
    first_document.author_directory,
    first_document.role,
    first_document.actual_role,
    first_document.language,
    first_document.entry_symbol,
    first_document.target_architectures,
    first_document.target_products,
    first_document.dependencies,
    first_document.destination_passing_style,
    first_document.license_declared,
    first_document.license_concluded,
    first_document.source_available,
    first_document.source_digest,
    first_document.source_file_name,
    first_document.source_size_bytes,
    first_document.source_revision,
    first_document.content_digest,
    first_document.document_digest,
    first_document.dataset,
    first_document.revision,
    first_document.path,
    first_document.line,
    first_document.parser_version,
    first_document.publication_id,
    first_document.published_at,
    named.solution_names
from first_document
inner join named using (implementation_digest)
