-- implementation_numbers: one row per implementation that has a run, with a number for it
-- formula: ranking-v2
-- key: implementation_digest
-- column implementation_digest: the implementation
-- column implementation_number: its number, from 1, in the order of the digests
-- note: Tables of many million rows are joined, grouped and sorted by the number instead of by the
--     digest. It is another one after the next publication; nothing outside the database keeps it.
with measured as (
    select distinct implementation_digest
    from runs
)

select
    implementation_digest,
    row_number() over (order by implementation_digest)::integer as implementation_number
from measured
