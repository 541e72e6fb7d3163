"""Every bound and time has a name, a unit and a reason, wherever it stands."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
PACKAGES = [
    "bulk/dss_bulk",
    "cli/dssctl",
    "client/dss_client",
    "core/dss_core",
    "daemon/dssd",
    "spark_tasks/dss_spark",
]
TUNABLE = re.compile(r"_(MS|S|US|MAX|MIN|ROWS|FACTOR|SHARE|GRAINS|PERCENT|ATTEMPTS|MS_MAX)$")
WHAT_A_FORMAT_CAN_SAY = {
    "OFFSET_MAX",
    "SEQUENCE_MAX",
    "STORAGE_TOPIC_ID_MAX",
    "SUBSCRIPTION_MAX",
    "_TIME_US_MAX",
    "LAYOUT_ROWS",
}


@cache
def constants(path: Path) -> list[tuple[str, ast.stmt | None]]:
    """Names in capitals that a module gives a number, and the statement behind each."""
    body = ast.parse(path.read_text()).body
    found: list[tuple[str, ast.stmt | None]] = []
    for node, behind in zip(body, [*body[1:], None], strict=True):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name.isupper() and is_a_number(node.value):
                found.append((name, behind))
    return found


def is_a_number(value: ast.expr) -> bool:
    """Written with digits only: what is computed from another name is tuned there."""
    parts = [part for part in ast.walk(value) if isinstance(part, ast.expr)]
    digits = ast.Constant | ast.BinOp | ast.UnaryOp
    return all(isinstance(part, digits) and not is_text(part) for part in parts)


def is_text(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and not isinstance(part.value, int | float)


def modules() -> Iterator[Path]:
    for package in PACKAGES:
        for path in (REPO / package).rglob("*.py"):
            if path.parent.name != "testing":
                yield path


def test_a_bound_has_its_reason_behind_it() -> None:
    bare = []
    for path in modules():
        for name, behind in constants(path):
            is_bound = TUNABLE.search(name) and name not in WHAT_A_FORMAT_CAN_SAY
            reason = isinstance(behind, ast.Expr) and isinstance(behind.value, ast.Constant)
            shared = isinstance(behind, ast.Assign)
            if (is_bound or path.name == "limits.py") and not reason and not shared:
                bare.append(f"{path.relative_to(REPO)}: {name}")
    assert bare == []


def test_a_bound_has_one_place() -> None:
    places = Counter(
        f"{path.relative_to(REPO).parts[0]}: {name}"
        for path in modules()
        for name, _ in constants(path)
        if TUNABLE.search(name) and not name.startswith("_")
    )
    assert [name for name, count in places.items() if count > 1] == []
