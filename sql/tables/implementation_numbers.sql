-- implementation_numbers: one row per implementation that has a run, with its number
-- key: implementation_number
-- column implementation_number: number of the implementation, from 1, in the order of the digests
-- column implementation_digest: the implementation
-- uncompressed: implementation_digest
select distinct
    implementation_number,
    implementation_digest
from run_subjects
