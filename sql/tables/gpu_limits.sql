-- gpu_limits: one row per device whose limits are stated
-- key: gpu_product
-- column gpu_product: device, as environments name it
-- column memory_bandwidth_gb_s: peak bandwidth of its memory, in 10^9 bytes a second
-- column cache_bytes: size of its last-level cache, in bytes
-- note: Vendors' data sheets; the cache of the H200 as its driver reports it. A device that is not
--     here has no floor, and no run on it is called impossible.
-- assert positive: memory_bandwidth_gb_s > 0 and cache_bytes > 0
select
    gpu_product,
    memory_bandwidth_gb_s::double as memory_bandwidth_gb_s,
    (cache_mib * 1048576)::bigint as cache_bytes
from (
    values
    ('NVIDIA B200', 8000, 126),
    ('NVIDIA GB200', 8000, 126),
    ('NVIDIA H200', 4800, 60),
    ('NVIDIA H100 80GB HBM3', 3350, 50),
    ('NVIDIA H100 PCIe', 2000, 50),
    ('NVIDIA A100-SXM4-80GB', 2039, 40),
    ('NVIDIA A100-SXM4-40GB', 1555, 40),
    ('NVIDIA A100 80GB PCIe', 1935, 40),
    ('NVIDIA A800-SXM4-80GB', 2039, 40),
    ('NVIDIA L40S', 864, 96),
    ('NVIDIA GeForce RTX 4090', 1008, 72),
    ('NVIDIA GeForce RTX 5090', 1792, 96),
    ('AMD Instinct MI300X', 5300, 256),
    ('Intel(R) Arc(TM) B580 Graphics', 456, 18)
) as stated (gpu_product, memory_bandwidth_gb_s, cache_mib)
