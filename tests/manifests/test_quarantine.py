"""The page of reasons is that of the code, and the reasons are what happens."""

import re
from pathlib import Path

import pytest

from assets.manifests.quarantine import Reason, Severity, reasons_page

REPOSITORY = Path(__file__).parents[2]
UPDATE = (
    "docs/quarantine.md is stale; write it anew: python -c 'from assets.manifests.quarantine "
    'import reasons_page; print(reasons_page(), end="")\' > docs/quarantine.md'
)


def test_the_page_of_reasons_is_up_to_date() -> None:
    assert (REPOSITORY / "docs/quarantine.md").read_text() == reasons_page(), UPDATE


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_is_explained_in_one_sentence(reason: Reason) -> None:
    assert reason.explanation.endswith(".")
    assert not re.search(r"[.!?] [A-Z]", reason.explanation)


@pytest.mark.parametrize("reason", list(Reason))
def test_a_reason_is_given_somewhere(reason: Reason) -> None:
    modules = (REPOSITORY / "assets" / "manifests").glob("*.py")
    assert any(re.search(rf"\bReason\.{reason.name}\b", module.read_text()) for module in modules)


def test_only_warnings_are_published() -> None:
    assert [r for r in Reason if r.severity is Severity.WARNING] == [Reason.UNKNOWN_FIELD]
