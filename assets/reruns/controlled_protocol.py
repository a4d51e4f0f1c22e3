"""The protocol and the environments of controlled runs, as manifests.

The public index knows both kinds; what they have no field for (parameters of the protocol, clocks,
calibration) stands in the notes, or beside the run in `reproductions`.
"""

from typing import Any

from assets.manifests import names
from assets.manifests.canonical import canonical_json
from assets.manifests.environments import Environment
from assets.manifests.kinds import (
    BenchmarkProtocol,
    Comparability,
    DevicePolicy,
    EnvironmentHardware,
    EnvironmentSettings,
    EnvironmentSoftware,
    ExecutionEnvironment,
    Framework,
    Harness,
    Manifest,
    Measurement,
    Metadata,
    ProtocolCorrectness,
)
from assets.reruns.result_documents import EnvironmentDocument
from assets.reruns.worker.job import PROTOCOL_NAME, Protocol

COMPARATOR = "kernelindex_controlled"
_OWN_FIELDS = ("python", "torch", "cuda")


def is_approved(parameters: dict[str, Any]) -> bool:
    """Whether these are the protocol's own parameters; more samples than it asks for are fine."""
    own = Protocol().document()
    measured = {**parameters, "samples": own["samples"], "wall_samples": own["wall_samples"]}
    return (
        measured == own
        and parameters["samples"] >= own["samples"]
        and parameters["wall_samples"] >= own["wall_samples"]
    )


def protocol_manifest(parameters: dict[str, Any], on_gpu: bool) -> Manifest:
    """The BenchmarkProtocol of a result; `parameters` are those that its bundle repeats."""
    name = PROTOCOL_NAME if on_gpu else f"{PROTOCOL_NAME}-cpu"
    return Manifest.of(
        BenchmarkProtocol(
            harness=Harness(name="kernelindex", version=PROTOCOL_NAME.rpartition("-")[2]),
            measurement=Measurement(
                timer="cuda_event" if on_gpu else "monotonic_clock",
                synchronization="device" if on_gpu else "none",
                compile_included=False,
                setup_included=False,
                warmup_duration=round(parameters["warmup_s"] * 1e9),
                samples=parameters["samples"],
                input_regeneration="every_call",
                outlier_policy="no sample is removed",
                primary_statistic="median",
            ),
            correctness=ProtocolCorrectness(
                reference="definition reference implementation, in a process of its own",
                comparator=COMPARATOR,
            ),
            device_policy=DevicePolicy(clocks_locked=False),
            comparability=Comparability(
                family="kernelindex_controlled" if on_gpu else "kernelindex_controlled_cpu",
                notes=f"warmupDuration in ns. Parameters: {canonical_json(parameters)}",
            ),
        ),
        Metadata(name=name, title=f"KernelIndex controlled rerun ({name})"),
    )


def environment_of_result(environment: EnvironmentDocument) -> Environment:
    """The environment of a result bundle's `environment.json`.

    Raises:
        KeyError, pydantic.ValidationError: parts are missing or are no names.
    """
    device, software = environment.device, environment.software
    on_gpu = device.kind == "cuda"
    if on_gpu:
        hardware = names.actual_hardware(device.name or "")
    else:
        hardware = names.Hardware("unknown", "CPU", environment.cpu.architecture.lower())
    libraries = {
        names.map_language(name): version[:100]
        for name, version in software.items()
        if name not in ("torch", "cuda") and names.TOKEN.match(names.map_language(name))
    }
    watts = device.power_limit_milliwatts
    cuda = software.get("cuda") or None
    manifest = Manifest.of(
        ExecutionEnvironment(
            hardware=EnvironmentHardware(
                vendor=hardware.vendor,
                product=hardware.product,
                architecture=hardware.architecture,
                memory_bytes=device.memory_bytes or None,
                count=1 if on_gpu else None,
            ),
            software=EnvironmentSoftware(
                operating_system=environment.operating_system[:200],
                driver=device.driver,
                cuda_toolkit=cuda,
                framework=Framework(name="pytorch", version=software["torch"]),
                libraries=libraries or None,
            ),
            settings=EnvironmentSettings(
                clocks_locked=False,
                power_limit_watts=watts / 1000 if watts else None,
                persistence_mode=device.persistence_mode,
                ecc_enabled=device.ecc_enabled,
            ),
        ),
        Metadata(
            name=names.kebab(f"controlled-{hardware.product}-{cuda}-{software['torch']}"),
            title=f"{hardware.product} (controlled rerun)"[:200],
        ),
    )
    summary = [
        *([f"CUDA {cuda}"] if cuda else []),
        f"pytorch {software['torch']}",
        *([f"driver {device.driver}"] if device.driver else []),
        PROTOCOL_NAME if on_gpu else f"{PROTOCOL_NAME} on a CPU",
    ]
    major = (cuda or "").partition(".")[0]
    return Environment(
        manifest,
        device.name or "CPU",
        hardware,
        int(major) if major.isdecimal() and len(major) < 10 else None,
        " · ".join(summary),
    )
