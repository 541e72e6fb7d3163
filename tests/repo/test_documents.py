"""The documents speak of what is there: paths, links, names of modules, sizes, the index."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
TESTING_BYTES_MAX = 12 << 10

PAGES = sorted(
    path.relative_to(REPO).as_posix()
    for path in (
        REPO / "README.md",
        REPO / "CONTRIBUTING.md",
        REPO / "bench/README.md",
        *(REPO / "docs").glob("*.md"),
        *(REPO / "docs/proof").glob("*.md"),
        *(REPO / "docs/decisions").glob("*.md"),
    )
)

FOLDERS = (
    "bench", "bulk", "cli", "client", "core", "daemon", "docs", "examples", "proto", "scripts",
    "sim", "spark_tasks",
    "tests",
)  # fmt: skip
PACKAGES = {
    "dss_api": "proto",
    "dss_client": "client",
    "dss_core": "core",
    "dss_sim": "sim",
    "dss_spark": "spark_tasks",
    "dssctl": "cli",
    "dssd": "daemon",
}

FENCE = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`([^`\n]+)`")
LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"[\w.*-]+(/[\w.*-]+)+/?")
BARE_FILE = re.compile(r"[\w*-]+\.(py|proto)")
MODULE = re.compile(rf"({'|'.join(PACKAGES)})(\.\w+)+")
CITATION = re.compile(r"docs/[\w/-]+\.md(?:#[\w-]+)?")


def text_of(page: str) -> str:
    """The page without its fenced blocks, which show commands, output and drawings."""
    return FENCE.sub("", (REPO / page).read_text())


def anchors_of(page: Path) -> set[str]:
    """The anchors of the headings of a page, as the usual viewers make them."""
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def is_met(pattern: str) -> bool:
    """Whether a path, perhaps with stars, is there."""
    return any(REPO.glob(pattern)) if "*" in pattern else (REPO / pattern).exists()


def names_a_file(code: str) -> bool:
    """Whether it is written as a path of this repository: from its root, or without any folder."""
    if code.startswith(".cache/"):
        return False  # written by a command, not kept
    if BARE_FILE.fullmatch(code):
        return True
    return bool(PATH.fullmatch(code)) and (
        code.split("/")[0] in FOLDERS or code.endswith((".py", ".proto", ".md"))
    )


def is_a_file(code: str) -> bool:
    """Whether the file is there; a name without a folder may be in any."""
    if "/" in code:
        return is_met(code)
    return any(next((REPO / folder).rglob(code), None) for folder in FOLDERS)


def names_something(dotted: str) -> bool:
    """Whether a dotted name leads to a module, and what is behind it stands in that module."""
    package, *parts = dotted.split(".")
    at = REPO / PACKAGES[package] / package
    for part in parts:
        if (at / part).is_dir():
            at /= part
        elif (at / f"{part}.py").is_file():
            at /= f"{part}.py"
        else:
            module = at if at.is_file() else at / "__init__.py"
            return re.search(rf"\b{part}\b", module.read_text()) is not None
    return True


def links_of(page: str) -> Iterator[tuple[str, str]]:
    """Targets of links inside the repository, and their anchors."""
    for target in LINK.findall(text_of(page)):
        if not target.startswith(("http://", "https://", "mailto:")):
            path, _, anchor = target.partition("#")
            yield path, anchor


@pytest.mark.parametrize("page", PAGES)
def test_every_path_in_a_page_exists(page: str) -> None:
    named = {code for code in CODE.findall(text_of(page)) if names_a_file(code)}
    assert sorted(code for code in named if not is_a_file(code)) == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_in_a_page_leads_to_a_page_and_its_heading(page: str) -> None:
    broken: list[str] = []
    for path, anchor in links_of(page):
        target = (REPO / page).parent / path if path else REPO / page
        if not target.exists() or (anchor and anchor not in anchors_of(target)):
            broken.append(f"{path}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", PAGES)
def test_every_module_that_a_page_names_exists(page: str) -> None:
    named = {code for code in CODE.findall(text_of(page)) if MODULE.fullmatch(code)}
    assert sorted(code for code in named if not names_something(code)) == []


def test_every_page_that_the_code_cites_has_that_heading() -> None:
    sources = [path for folder in FOLDERS for path in (REPO / folder).rglob("*.py")]
    broken: list[str] = []
    for source in sources:
        for cited in CITATION.findall(source.read_text()):
            path, _, anchor = cited.partition("#")
            page = REPO / path
            if not page.is_file() or (anchor and anchor not in anchors_of(page)):
                broken.append(f"{source.relative_to(REPO)}: {cited}")
    assert broken == []


def test_the_page_on_testing_is_read_in_a_quarter_of_an_hour() -> None:
    assert len((REPO / "docs/testing.md").read_bytes()) <= TESTING_BYTES_MAX


def test_the_page_on_testing_leads_to_every_page_of_proof() -> None:
    linked = {path for path, _ in links_of("docs/testing.md")}
    pages = {f"proof/{path.name}" for path in (REPO / "docs/proof").glob("*.md")}
    assert pages - linked == set()


def test_every_decision_is_in_the_index() -> None:
    folder = REPO / "docs/decisions"
    records = {path.name for path in folder.glob("[0-9]*.md")}
    assert records
    assert records - {path for path, _ in links_of("docs/decisions/README.md")} == set()


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:4]) for path in (REPO / "docs/decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_a_decision_has_the_number_of_its_file() -> None:
    records = (REPO / "docs/decisions").glob("[0-9]*.md")
    misnumbered = [
        path.name
        for path in records
        if not path.read_text().startswith(f"# {int(path.name[:4])}. ")
    ]
    assert misnumbered == []


def pages_of_the_site(nav: list[dict[str, object]]) -> Iterator[str]:
    """The pages that a navigation leads to."""
    for entry in nav:
        for target in entry.values():
            if isinstance(target, str):
                yield target
            elif isinstance(target, list):
                yield from pages_of_the_site(target)


def test_every_page_is_in_the_navigation_of_the_site_and_on_its_first_page() -> None:
    pages = {path.name for path in (REPO / "docs").glob("*.md")}
    site = tomllib.loads((REPO / "zensical.toml").read_text())["project"]
    assert pages - set(pages_of_the_site(site["nav"])) == set()
    assert pages - {path for path, _ in links_of("docs/index.md")} == {"index.md"}
