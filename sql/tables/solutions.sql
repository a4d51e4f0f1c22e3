-- solutions: one row per solution file; several may share an implementation
-- key: implementation_digest, dataset, path
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
-- note: A file may hold one implementation in several documents, one after the other, that differ
--     in what is told of it (author, description): the newest one stands.
-- uncompressed: implementation_digest, source_digest, content_digest, document_digest
with documents as (
    select
        published_implementations.*,
        dataset_revisions.position
    from published_implementations
    anti join identity_aliases using (implementation_digest)
    left join dataset_revisions
        on
            dataset_revisions.dataset = published_implementations.dataset
            and dataset_revisions.revision = published_implementations.revision
    -- The same document from an earlier revision that arrived late.
    qualify
        row_number() over (
            partition by
                published_implementations.implementation_digest,
                published_implementations.dataset,
                published_implementations.path,
                published_implementations.document_digest
            order by dataset_revisions.position nulls last, published_implementations.publication_id
        ) = 1
)

select
    implementation_digest,
    operation_digest,
    project_digest,
    project_slug,
    slug,
    solution_name,
    definition_name,
    author,
    author_directory,
    role,
    actual_role,
    language,
    entry_symbol,
    target_architectures,
    target_products,
    dependencies,
    destination_passing_style,
    license_declared,
    license_concluded,
    source_available,
    source_digest,
    source_file_name,
    source_size_bytes,
    source_revision,
    content_digest,
    document_digest,
    dataset,
    revision,
    path,
    line,
    parser_version,
    publication_id,
    published_at
from documents
qualify
    row_number() over (
        partition by implementation_digest, dataset, path
        order by position desc nulls last, document_digest, publication_id
    ) = 1
