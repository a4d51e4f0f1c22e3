-- caveat_codes: one row per caveat that a run can have
-- formula: caveats-v2
-- key: code
-- column code: the caveat
-- column explanation: what it means for whoever reads the run
-- column value_means: what caveats.value and caveats.threshold say
select
    code,
    explanation,
    value_means
from (
    values
    (
        'MIXED_INPUTS',
        'The comparison group holds workloads whose tensor files differ; ranking-v2 separates them.',
        'number of different inputs; 1 would be none'
    ),
    (
        'TIMER_ERA',
        'The strict group holds runs from before and after upstream changed its timer from the'
        || ' mean of CUDA events to the median of CUPTI, and no trace says which it used.',
        'runs of the other era in the strict group'
    ),
    (
        'REFERENCE_DISAGREES',
        'The reference took much longer or shorter than in other runs of the strict group, so the'
        || ' machine or the measurement was another; do not use the speed-up.',
        'reference latency divided by the median of the group, or its inverse where below 1'
    ),
    (
        'REPEATED_MEASUREMENT',
        'The implementation was measured more than once in the strict group; ranking-v2 takes the'
        || ' median.',
        'slowest divided by fastest repeat'
    ),
    (
        'LOOSE_TOLERANCE',
        'The run passed with a large relative error.',
        'largest relative error'
    ),
    (
        'ERROR_NOT_FINITE',
        'The run passed, but its largest absolute or relative error is infinite, NaN or not stated,'
        || ' so nobody knows how far off its outputs are.',
        'nothing; runs.correctness_extra_json has what the source wrote'
    ),
    (
        'MIXED_OUTCOMES',
        'The implementation both passed and failed in the strict group, so that it may work by'
        || ' chance; only what passed is ranked.',
        'runs of it there that failed'
    ),
    (
        'NOT_MEASURED',
        'The harness skipped the solution after earlier failures; this is no failure of its own.',
        'nothing'
    ),
    (
        'SOURCE_OF_OTHER_DEFINITION',
        'The implementation was written for another operation than the one that was measured.',
        'nothing'
    ),
    (
        'IMPOSSIBLE_SPEED',
        'The latency is below what moving the inputs and outputs takes at the peak bandwidth of the'
        || ' device, with its whole cache already filled; or below 100 ns, which is less than a GPU'
        || ' needs to load one input from the cache that its cores share.',
        'latency in ns; the threshold is the floor in ns'
    ),
    (
        'UNKNOWN_ARCHITECTURE',
        'The architecture of the device is not known, so the run cannot be found by it.',
        'nothing'
    )
) as codes (code, explanation, value_means)
