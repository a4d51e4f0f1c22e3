"""Solutions become ImplementationRevision manifests and the projects they belong to."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from assets.manifests import licenses, names
from assets.manifests.canonical import sha256_digest, utf8
from assets.manifests.kinds import (
    Author,
    ImplementationRevision,
    Licensing,
    Manifest,
    Metadata,
    OperationReference,
    ProjectHost,
    ProjectRevision,
    SoftwareProject,
    SourceContent,
    SourceReference,
    Support,
)
from assets.manifests.kinds import (
    Callable as CallableSpec,
)
from assets.manifests.operations import Operation
from assets.manifests.quarantine import Reason, RejectionError
from assets.manifests.rejections import rejection_of
from assets.manifests.trust import Deployability, deployability
from assets.traces.documents import Solution, Source

BASELINE = "baseline"
_HUB = "https://huggingface.co/datasets/"
_MEDIA_TYPES = {".py": "text/x-python", ".cu": "text/x-cuda"}


@dataclass(frozen=True)
class DatasetOrigin:
    """What of a dataset enters manifests: its page and the revision that is read."""

    dataset: str
    url: str | None
    revision: str

    @property
    def license_declared(self) -> str | None:
        """The licence that the dataset states for its contents, None where it states none."""
        return licenses.DECLARED.get(self.dataset)

    def blob_url(self, path: str, revision: str | None = None) -> str | None:
        """The page of a file at the revision (default: the one that is read)."""
        return f"{self.url}/blob/{revision or self.revision}/{path}" if self.url else None


IdentityRevision = Callable[["Content"], str]
"""The revision (40 hex) under which a solution's content is known."""


@dataclass(frozen=True)
class Content:
    """What a solution is known by, whatever its file is called and wherever it lies.

    `digest` is that of the document without regard to spacing, author and description: who is
    named and what is told of a solution change nothing of what runs. `document_digest` has both,
    as versions before 2 knew a solution.
    """

    digest: str
    document_digest: str

    @classmethod
    def of(cls, solution: Solution) -> "Content":
        """The content of a solution."""
        document = solution.model_dump(exclude_unset=True)
        whole = sha256_digest(json.dumps(document, sort_keys=True))
        for editorial in ("author", "description"):
            document.pop(editorial, None)
        return cls(sha256_digest(json.dumps(document, sort_keys=True)), whole)


@dataclass(frozen=True)
class Project:
    """An author of a dataset as a SoftwareProject."""

    manifest: Manifest
    slug: str


@dataclass(frozen=True)
class SourceFile:
    """The main source of a solution, kept by digest."""

    digest: str
    name: str
    media_type: str
    content: str
    size_bytes: int


@dataclass(frozen=True)
class Implementation:
    """A solution with its manifest.

    Two revisions with the same content are the same implementation, see `Content`.
    """

    name: str
    author: str | None
    author_directory: str
    role: str | None
    actual_role: str
    definition: str
    path: str
    manifest: Manifest
    slug: str
    project: Project
    language: str
    source: SourceFile | None
    destination_passing_style: bool | None
    dependencies: tuple[str, ...]
    target_hardware: tuple[str, ...]
    content: Content
    source_revision: str

    @cached_property
    def digest(self) -> str:
        """The implementation digest."""
        return self.manifest.digest

    @cached_property
    def source_available(self) -> bool:
        """Whether the source can be had: kept here, or at a repository that is named."""
        return self.source is not None or "repository" in self.manifest.spec["projectRevision"]

    @property
    def deployability(self) -> Deployability:
        """A dataset gives sources but no recipe to install them."""
        return deployability(
            source_available=self.source_available,
            installable=False,
            license_concluded=self.manifest.spec["licensing"].get("concluded"),
        )


def project_of(author: str | None, origin: DatasetOrigin) -> Project:
    """The project that stands for an author.

    Raises:
        RejectionError: for a name that is too long.
    """
    label = (author or "").strip() or "unknown"
    slug = f"flashinfer-{names.kebab(label)}"
    on_hub = origin.url is not None and origin.url.startswith(_HUB)
    host_id = origin.url.removeprefix(_HUB) if origin.url and on_hub else origin.dataset
    try:
        manifest = Manifest.of(
            SoftwareProject(
                name="FlashInfer-Bench baselines" if label == BASELINE else label,
                kind="library" if label == BASELINE else "individual",
                repository=origin.url,
                host=ProjectHost(kind="huggingface" if on_hub else "other", id=host_id),
            ),
            Metadata(name=slug),
        )
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_NAME, "$.author") from error
    return Project(manifest, slug)


def implementation_of(
    solution: Solution,
    *,
    operation: Operation,
    origin: DatasetOrigin,
    identity_revision: IdentityRevision,
    path: str,
    author_directory: str,
) -> Implementation:
    """The implementation that a solution is, at the revision at which its content is known.

    Raises:
        RejectionError: for what the manifest cannot hold.
    """
    spec = solution.spec
    entry_path, _, rest = ((spec and spec.entry_point) or "").partition("::")
    symbol = rest.partition("::")[0]
    main = _main_source(solution.sources or [], entry_path)
    _reject_nul(solution, main)
    language = names.map_language(_language(solution))
    targets = tuple(name for name in ((spec and spec.target_hardware) or []) if name != "LOCAL")
    devices = [names.map_hardware(name) for name in targets]
    source = _source_file(main)
    role = _published_role(author_directory, solution.author)
    slug_name = names.kebab(solution.name)
    if not slug_name:
        raise RejectionError(
            Reason.BAD_NAME, f"name {solution.name!r} leaves no identifier", "$.name"
        )
    if not names.TOKEN.match(language):
        raise RejectionError(
            Reason.BAD_FIELD,
            f"spec.language {_language(solution)!r} is no identifier",
            "$.spec.language",
        )
    content = Content.of(solution)
    revision = identity_revision(content)
    blob_url = origin.blob_url(path, revision)
    labels = {"role": role} if role == BASELINE else None
    if role == "llm-generated":
        labels = {"role": role, "author": author_directory}
    try:
        manifest = Manifest.of(
            ImplementationRevision(
                project_revision=ProjectRevision(repository=origin.url, commit=revision),
                operation=OperationReference(spec_digest=operation.digest),
                callable=CallableSpec(
                    language=language, path=main.path if main else None, symbol=symbol or None
                ),
                support=Support(
                    hardware_architectures=[device.architecture for device in devices]
                    or ["unknown"],
                    products_tested=[device.product for device in devices],
                    dtypes=operation.dtypes,
                ),
                source=_source_content(source),
                licensing=Licensing(
                    declared=origin.license_declared,
                    concluded=licenses.concluded_license(origin.license_declared),
                ),
            ),
            Metadata(
                name=slug_name,
                title=solution.name,
                description=solution.description,
                labels=labels,
                authors=[Author(name=solution.author)] if solution.author else None,
                source_refs=[SourceReference(url=blob_url)] if blob_url else None,
            ),
        )
    except ValidationError as error:
        raise rejection_of(error, Reason.BAD_FIELD) from error
    return Implementation(
        name=solution.name,
        author=solution.author,
        author_directory=author_directory,
        role=role,
        actual_role=_actual_role(author_directory, solution.author),
        definition=solution.definition,
        path=path,
        manifest=manifest,
        slug=names.kebab(f"flashinfer-{solution.name}"),
        project=project_of(solution.author, origin),
        language=language,
        source=source,
        destination_passing_style=spec.destination_passing_style if spec else None,
        dependencies=tuple((spec and spec.dependencies) or ()),
        target_hardware=targets,
        content=content,
        source_revision=revision,
    )


def _language(solution: Solution) -> str:
    spec = solution.spec
    if spec is None:
        return "unknown"
    # SOL-ExecBench writes a list.
    return spec.language or (spec.languages or ["unknown"])[0]


def _main_source(sources: list[Source], entry_path: str) -> Source | None:
    by_path = {source.path: source for source in reversed(sources)}
    return by_path.get(entry_path) or (sources[0] if sources else None)


def _source_file(main: Source | None) -> SourceFile | None:
    if main is None or not main.content:
        return None
    suffix = main.path[main.path.rfind(".") :] if "." in main.path else ""
    return SourceFile(
        digest=sha256_digest(main.content),
        name=main.path,
        media_type=_MEDIA_TYPES.get(suffix, "text/plain"),
        content=main.content,
        size_bytes=len(utf8(main.content)),
    )


def _source_content(source: SourceFile | None) -> SourceContent | None:
    if source is None:
        return None
    return SourceContent(
        content_digest=source.digest, file_name=source.name, size_bytes=source.size_bytes
    )


def _published_role(author_directory: str, author: str | None) -> str | None:
    """The role as the public index labels it: by the directory alone."""
    if author_directory != BASELINE:
        return "llm-generated"
    return BASELINE if (author or BASELINE) == BASELINE else None


# Directories whose solutions people wrote; the public index labels them llm-generated.
_HUMAN_DIRECTORIES = frozenset({"rocm-port", "flashinfer-bench-examples", "flashinfer"})


def _actual_role(author_directory: str, author: str | None) -> str:
    """The role as we keep it beside: `baseline`, `human`, or `agent`."""
    if author_directory == BASELINE:
        return BASELINE if (author or BASELINE) == BASELINE else "human"
    return "human" if author_directory in _HUMAN_DIRECTORIES else "agent"


def _reject_nul(solution: Solution, main: Source | None) -> None:
    texts = {
        "name": solution.name,
        "author": solution.author,
        "description": solution.description,
        "sources": main.content if main else None,
        "spec.language": solution.spec.language if solution.spec else None,
        "spec.entry_point": solution.spec.entry_point if solution.spec else None,
    }
    for field, text in texts.items():
        if "\x00" in (text or ""):
            raise RejectionError(
                Reason.NUL_CHARACTER, f"{field} holds a NUL character", f"$.{field}"
            )
