-- operation_aliases: one row per operation and name of it
select
    try_cast(substr(operation_digest, 8, 32) as uuid)::varchar as "operationId",
    unnest(list_sort(list_distinct(list_concat(aliases, definition_names)))) as "alias"
from operations
order by "alias", "operationId"
