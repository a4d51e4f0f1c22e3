"""Small warehouses and what their sites hold: files, links, texts."""

from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

from assets.leaderboards.build import build_database
from assets.leaderboards.site.build import build_site
from assets.leaderboards.site.folder import Written
from assets.manifests.normalize import normalize
from assets.tables.known import known_for
from assets.tables.publication import PublicationRequest, publish
from assets.tables.warehouse import Warehouse
from assets.traces.pull import pull
from tests import builders

# Closes what it may stand in, runs if it is read as markup, and keeps quotes of both kinds.
MARKUP = "\"'></title></script><script>window.pwned=1</script><img src=x onerror=pwned=1>"
HOSTILE_AUTHOR = "<img src=x onerror=pwned=2>"
OTHER_UUID = "22222222-2222-4333-8444-555555555555"


def publish_dataset(warehouse: Warehouse, directory: Path) -> None:
    """Ingest a directory and build the database, without Dagster."""
    warehouse.prepare()
    snapshot = pull(str(directory), revision=None, authors=None, store=warehouse.store)
    staging = warehouse.staging(directory.name)
    known = known_for(warehouse, snapshot)
    normalize(snapshot, warehouse.store, staging, known, processes=1)
    request = PublicationRequest(
        kind="ingest", dataset=snapshot.dataset, revision=snapshot.revision
    )
    publish(warehouse, staging, request)
    build_database(warehouse)


def toy_dataset(root: Path, latencies_ms: dict[str, float | None]) -> Path:
    """One operation and workload; solutions of `ann` with a latency, or with a failed run."""
    files: dict[str, builders.Content] = {
        f"solutions/{builders.AUTHOR}/toy/{builders.OPERATION}/{name}.json": builders.solution(name)
        for name in latencies_ms
    }
    files["dataset.json"] = {"id": "toys"}
    traces = [_trace(name, latency) for name, latency in latencies_ms.items()]
    return builders.dataset(root, files, traces=traces)


def _trace(solution: str, latency_ms: float | None) -> builders.Json:
    if latency_ms is not None:
        return builders.trace(solution=solution, evaluation__performance__latency_ms=latency_ms)
    return builders.trace(
        solution=solution,
        evaluation__status="RUNTIME_ERROR",
        evaluation__log="ran out of shared memory",
        evaluation__performance=None,
        evaluation__correctness=None,
    )


def hostile_dataset(root: Path) -> Path:
    """A dataset with markup in every text that people write."""
    author = HOSTILE_AUTHOR
    solution = f"good {MARKUP}"
    failing = f"bad {MARKUP}"
    named = {"author": author, "spec__dependencies": [MARKUP], "spec__target_hardware": [MARKUP]}
    source = [{"path": "main.py", "content": f"# {MARKUP}\ndef run(x, w): ...\n"}]
    environment = {
        "evaluation__environment__hardware": f"NVIDIA {MARKUP}",
        "evaluation__environment__libs": {"torch": f"2 {MARKUP}", "triton": MARKUP, "cuda": "12.8"},
    }
    return builders.write_files(
        root,
        {
            # A licence is stated for this dataset, so that its sources are shown.
            "dataset.json": {"id": "kernelindex/sample"},
            builders.DEFINITION_FILE: builders.definition(description=MARKUP, tags=[MARKUP]),
            f"solutions/{author}/toy/{builders.OPERATION}/a.json": builders.solution(
                solution, sources=source, **named
            ),
            f"solutions/{author}/toy/{builders.OPERATION}/b.json": builders.solution(
                failing, **named
            ),
            f"traces/{author}/toy/{builders.OPERATION}.jsonl": [
                builders.trace(solution=solution, **environment),
                builders.trace(
                    solution=solution,
                    evaluation__timestamp="2025-10-22T13:37:42.930971",
                    evaluation__performance__latency_ms=0.01,
                    **environment,
                ),
                builders.trace(
                    solution=failing,
                    evaluation__status="RUNTIME_ERROR",
                    evaluation__log=f"Traceback: {MARKUP}",
                    evaluation__performance=None,
                    evaluation__correctness=None,
                    **environment,
                ),
                builders.trace(solution=f"unknown {MARKUP}", **environment),
            ],
        },
    )


@dataclass
class Page(HTMLParser):
    """What stands on a page: its elements with attributes, and the text that is shown."""

    path: Path
    elements: list[tuple[str, dict[str, str | None]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.feed(self.path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())

    @property
    def identifiers(self) -> list[str]:
        return [str(attributes["id"]) for _, attributes in self.elements if "id" in attributes]

    def addresses(self) -> list[str]:
        """Everything that the page leads to or loads."""
        names = ("href", "src", "action", "data-script", "data-search")
        return [
            str(attributes[name])
            for _, attributes in self.elements
            for name in names
            if attributes.get(name)
        ]


@dataclass(frozen=True)
class Site:
    """A built site with the warehouse that it was made from."""

    warehouse: Warehouse
    root: Path

    @classmethod
    def of(cls, directory: Path, place: Path) -> "Site":
        """Ingest a dataset and build its site."""
        warehouse = Warehouse(place / "warehouse")
        publish_dataset(warehouse, directory)
        site = cls(warehouse, place / "site")
        site.build()
        return site

    def build(self) -> Written:
        return build_site(self.warehouse, self.root).files

    def pages(self) -> list[Path]:
        return sorted(self.root.rglob("*.html"))

    def page(self, address: str) -> Page:
        return Page(self.root / address)

    def only(self, pattern: str) -> Page:
        [path] = self.root.glob(pattern)
        return Page(path)

    def states(self) -> dict[str, tuple[int, bytes]]:
        """Every file with its time of change and content."""
        return {
            str(path.relative_to(self.root)): (path.stat().st_mtime_ns, path.read_bytes())
            for path in self.root.rglob("*")
            if path.is_file()
        }

    def broken_links(self) -> list[tuple[str, str]]:
        """Links that lead to no file, or to no element of the file's page."""
        pages = {path: Page(path) for path in self.pages()}
        broken = []
        for path, page in pages.items():
            for address in page.addresses():
                parts = urlsplit(address)
                if parts.scheme:
                    continue
                target = (path.parent / parts.path).resolve() if parts.path else path
                known = target in pages and parts.fragment in ("", *pages[target].identifiers)
                if not (known or (target not in pages and target.is_file())):
                    broken.append((str(path.relative_to(self.root)), address))
        return broken
