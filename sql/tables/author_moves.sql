-- author_moves: one row per solution of an author directory whose file now lies in another one
-- key: implementation_digest, solution_name, author_directory
-- column implementation_digest: the implementation, by the digest that is shown
-- column solution_name: name of the solution
-- column author_directory: author directory in which there is no such file any more
-- column moved_to: author directory that has it now
-- note: Runs are shown under the author of today. A file that went away while another author
--     already had the same one has not moved there.
with files as (
    select
        solutions.implementation_digest,
        solutions.solution_name,
        solutions.author_directory,
        bool_or(not coalesce(file_states.removed, false)) as is_there,
        min(first.position) as first_position,
        max(last.position) as last_position
    from solutions
    left join file_states
        on file_states.dataset = solutions.dataset and file_states.path = solutions.path
    left join dataset_revisions as first
        on first.dataset = solutions.dataset and first.revision = solutions.revision
    left join dataset_revisions as last
        on last.dataset = file_states.dataset and last.revision = file_states.revision
    group by solutions.implementation_digest, solutions.solution_name, solutions.author_directory
)

select
    gone.implementation_digest,
    gone.solution_name,
    gone.author_directory,
    min(there.author_directory) as moved_to
from files as gone
inner join files as there
    on
        there.implementation_digest = gone.implementation_digest
        and there.solution_name = gone.solution_name
        and there.is_there
        and there.first_position > gone.last_position
where not gone.is_there
group by gone.implementation_digest, gone.solution_name, gone.author_directory
having count(*) = 1
