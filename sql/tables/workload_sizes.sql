-- workload_sizes: one row per workload, with the bytes that any implementation has to move
-- key: workload_digest
-- column workload_digest: digest of the WorkloadCase manifest
-- column input_bytes: size of all input tensors, in bytes
-- column output_bytes: size of all output tensors, in bytes; a dimension that no axis names is left
--     out, which makes it smaller
-- column moved_bytes: bytes that cannot be avoided: every output, and the inputs where the
--     operation's family has to read all of them
-- uncompressed: workload_digest
-- note: A paged or sparse operation reads only some of its pages, so its inputs do not count.
-- assert not_negative: input_bytes >= 0 and output_bytes >= 0
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
        min(axes_json)::json::map(varchar, bigint) as axes,
        map_values(
            from_json(
                min(canonical_json) -> '$.spec.tensors',
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
        min(constant_axes_json)::json::map(varchar, bigint) as axes,
        from_json(
            min(canonical_json) -> '$.spec.outputs',
            '[{"tensor": {"dtype": "VARCHAR", "shape": ["VARCHAR"]}}]'
        ) as outputs
    from published_operations
    group by operation_digest
),

sized as (
    select
        cases.workload_digest,
        operations_read.family,
        list_sum(
            list_transform(
                cases.inputs,
                lambda argument: coalesce(dtype_bytes[argument.dtype], 0)
                * coalesce(list_aggregate(argument.shape, 'product'), 1)
            )
        ) as input_bytes,
        list_sum(
            list_transform(
                operations_read.outputs,
                lambda argument: coalesce(dtype_bytes[argument.tensor.dtype], 0)
                * coalesce(
                    list_aggregate(
                        list_transform(
                            argument.tensor.shape,
                            lambda dimension: coalesce(
                                try_cast(dimension as bigint),
                                cases.axes[dimension],
                                operations_read.axes[dimension]
                            )
                        ),
                        'product'
                    ),
                    1
                )
            )
        ) as output_bytes
    from cases
    left join operations_read using (operation_digest)
    cross join bytes_by_dtype
)

select
    workload_digest,
    coalesce(input_bytes, 0)::bigint as input_bytes,
    coalesce(output_bytes, 0)::bigint as output_bytes,
    (
        coalesce(output_bytes, 0)
        + case
            when family in ('gemm', 'rmsnorm', 'silu', 'softmax') then coalesce(input_bytes, 0)
            else 0
        end
    )::bigint as moved_bytes
from sized
