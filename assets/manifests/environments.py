"""The device and software that a trace reports become an ExecutionEnvironment manifest."""

from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from assets.manifests import names
from assets.manifests.kinds import (
    EnvironmentHardware,
    EnvironmentSoftware,
    ExecutionEnvironment,
    Framework,
    Manifest,
    Metadata,
)
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.rejections import rejection_of
from assets.traces.documents import TraceEnvironment


@dataclass(frozen=True)
class Environment:
    """Device and software of a trace.

    `reported_hardware` is the device as the trace names it, `actual` has vendor and architecture
    put right.
    """

    manifest: Manifest
    reported_hardware: str
    actual: names.Hardware
    cuda_major: int | None
    summary: str

    @cached_property
    def digest(self) -> str:
        """The environment digest, which is the environment key too."""
        return self.manifest.digest


def environment_of(environment: TraceEnvironment) -> Environment:
    """The environment that a trace reports.

    Raises:
        RejectionError: names or versions that a manifest cannot hold.
    """
    at = "$.evaluation.environment"
    libraries: dict[str, str] = {}
    for library, version in environment.libs.items():
        name = names.map_language(library)
        if library in ("cuda", "torch"):
            continue
        if not names.TOKEN.match(name):
            raise RejectionError(
                Reason.BAD_ENVIRONMENT, f"library name {library!r} is no identifier", f"{at}.libs"
            )
        if libraries.get(name, version) != version:
            raise RejectionError(
                Reason.NAME_COLLISION, f"two libraries are both named {name!r}", f"{at}.libs"
            )
        libraries[name] = version
    texts = {"hardware": [environment.hardware], "libs": [*environment.libs.values()]}
    for field, values in texts.items():
        if any("\x00" in text for text in values):
            raise RejectionError(Reason.NUL_CHARACTER, "holds a NUL character", f"{at}.{field}")
    hardware = names.map_hardware(environment.hardware)
    cuda, torch = environment.libs.get("cuda"), environment.libs.get("torch")
    try:
        manifest = Manifest.of(
            ExecutionEnvironment(
                hardware=EnvironmentHardware(
                    vendor=hardware.vendor,
                    product=hardware.product,
                    architecture=hardware.architecture,
                ),
                software=EnvironmentSoftware(
                    cuda_toolkit=cuda,
                    framework=Framework(name="pytorch", version=torch) if torch else None,
                    libraries=libraries or None,
                ),
            ),
            Metadata(
                name=_environment_name(environment),
                title=f"{hardware.product} (trace-reported software)",
            ),
        )
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_ENVIRONMENT, at) from error
    return Environment(
        manifest,
        environment.hardware,
        names.actual_hardware(environment.hardware),
        _leading_integer(cuda),
        " · ".join(
            [
                *([f"CUDA {cuda}"] if cuda else []),
                *([f"pytorch {torch}"] if torch else []),
                names.SOURCE,
            ]
        ),
    )


def _environment_name(environment: TraceEnvironment) -> str:
    versions = [version for _, version in names.document_order(environment.libs)]
    return names.kebab(f"sol-trace-{environment.hardware}-{'-'.join(versions)}")


def _leading_integer(text: str | None) -> int | None:
    digits = ""
    for character in (text or "").lstrip():
        if not (character.isascii() and character.isdigit()):
            break
        digits += character
    return int(digits) if digits else None
