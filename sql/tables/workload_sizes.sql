-- workload_sizes: one row per workload, with the bytes that any implementation has to move
-- key: workload_digest
-- column workload_digest: digest of the WorkloadCase manifest
-- column input_bytes: size of all input tensors, in bytes; null for a size that no memory has: beyond
--     2^53 bytes, or with a negative dimension
-- column output_bytes: size of all output tensors, in bytes; null as input_bytes; a dimension that no
--     axis names is left out, which makes it smaller
-- column moved_bytes: bytes that cannot be avoided: every output, and the inputs where the
--     operation's family has to read all of them; null where one of these is
-- uncompressed: workload_digest
-- note: A paged or sparse operation reads only some of its pages, so its inputs do not count.
-- note: Counted in doubles, which are exact up to 2^53 and never overflow; a manifest that is not
--     what its schema says counts as one without tensors.
-- assert not_negative: coalesce(input_bytes >= 0, true) and coalesce(output_bytes >= 0, true)
with bytes_by_dtype as (
    select
        map {
            'fp64': 8, 'int64': 8, 'fp32': 4, 'int32': 4, 'fp16': 2, 'bf16': 2, 'int16': 2,
            'fp8_e4m3': 1, 'fp8_e5m2': 1, 'int8': 1, 'uint8': 1, 'bool': 1,
            'fp4_e2m1': 0.5, 'int4': 0.5
        } as dtype_bytes
),

cases as (
    select
        workload_digest,
        min(operation_digest) as operation_digest,
        from_json(
            try_cast(min(axes_json) as json), '"MAP(VARCHAR, BIGINT)"'
        ) as axes,
        map_values(
            from_json(
                try_cast(min(canonical_json) as json) -> '$.spec.tensors',
                '"MAP(VARCHAR, STRUCT(dtype VARCHAR, shape BIGINT[]))"'
            )
        ) as inputs
    from published_workloads
    group by workload_digest
),

operations_read as (
    select
        operation_digest,
        min(family) as family,
        from_json(
            try_cast(min(constant_axes_json) as json), '"MAP(VARCHAR, BIGINT)"'
        ) as axes,
        from_json(
            try_cast(min(canonical_json) as json) -> '$.spec.outputs',
            '[{"tensor": {"dtype": "VARCHAR", "shape": ["VARCHAR"]}}]'
        ) as outputs
    from published_operations
    group by operation_digest
),

shaped as (
    select
        cases.workload_digest,
        operations_read.family,
        cases.inputs,
        list_transform(
            operations_read.outputs,
            lambda argument: {
                'dtype': argument.tensor.dtype,
                'shape': list_transform(
                    argument.tensor.shape,
                    lambda dimension: coalesce(
                        try_cast(dimension as bigint),
                        cases.axes[dimension],
                        operations_read.axes[dimension]
                    )
                )
            }
        ) as outputs
    from cases
    left join operations_read using (operation_digest)
),

-- A tensor with a negative dimension is as large as one beyond all numbers: neither has a size.
counted as (
    select
        shaped.workload_digest,
        shaped.family,
        coalesce(
            list_sum(
                list_transform(
                    shaped.inputs,
                    lambda argument: coalesce(dtype_bytes[argument.dtype], 0) * case
                        when list_min(argument.shape) < 0 then 'infinity'::double
                        else coalesce(list_aggregate(argument.shape, 'product'), 1)
                    end
                )
            ),
            0
        ) as input_bytes,
        coalesce(
            list_sum(
                list_transform(
                    shaped.outputs,
                    lambda argument: coalesce(dtype_bytes[argument.dtype], 0) * case
                        when list_min(argument.shape) < 0 then 'infinity'::double
                        else coalesce(list_aggregate(argument.shape, 'product'), 1)
                    end
                )
            ),
            0
        ) as output_bytes
    from shaped
    cross join bytes_by_dtype
),

summed as (
    select
        workload_digest,
        input_bytes,
        output_bytes,
        case
            when family in ('gemm', 'rmsnorm', 'silu', 'softmax') then output_bytes + input_bytes
            else output_bytes
        end as moved_bytes
    from counted
)

select
    workload_digest,
    case when input_bytes <= 9007199254740992 then input_bytes::bigint end as input_bytes,
    case when output_bytes <= 9007199254740992 then output_bytes::bigint end as output_bytes,
    case when moved_bytes <= 9007199254740992 then moved_bytes::bigint end as moved_bytes
from summed
