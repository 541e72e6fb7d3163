"""nats-py's own tests of subscribing and pulling, through the facade.

They come from an archive of the package index, pinned by its hash: nothing of them is kept here.
`support.nats_py_names` has the names that they use. The page has a table of those that do not
apply, each of which is seen to fail; and of what is taken out of the others, line by line.
"""

import asyncio
import os
import re
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from support.prerequisites import INDEX, leave_out
from support.proof_share import only_in_proof

REPO = Path(__file__).resolve().parents[3]
PAGE = REPO / "docs" / "jetstream.md"

PINNED = (
    "nats-py==2.14.0 --hash=sha256:4ed02cb8e3b55c68074a063aa2687087115d805d1513297da90cb2068fb07bed"
)
"""The last one whose archive has its tests."""

CLASSES = ("PullSubscribeTest", "SubscribeTest", "AckPolicyTest", "OrderedConsumerTest")
BESIDE = ("V210FeaturesTest.test_fetch_pull_subscribe_bind",)
TEST = re.compile(r"^class (\w+)|^    async def (test_\w+)", re.MULTILINE)
AT_ONCE = max(2, os.cpu_count() or 1)
DOWNLOAD_S_MAX = 120
TEST_S_MAX = 180

LEFT_OUT = re.compile(
    r"^( +)(?:assert (?:msg\.metadata\.(?:sequence\.consumer|num_pending)|info\.num_waiting"
    r"|info\.num_redelivered == 1"
    r"|info\.\w+\.consumer_seq|info\.delivered\.stream_seq|msg\.headers\[\"Status\"\])"
    r"|msg = await sub\._sub\.next_msg).*$",
    re.MULTILINE,
)
"""Lines that look at what the page says is not told, or at the inside of nats-py."""
LEFT_OUT_LINES = 21

RACES = {"OrderedConsumerTest.test_ordered_consumer"}
"""It looks at once for what comes a moment later, and may find it."""


def stated() -> dict[str, str]:
    """By test that does not apply, why."""
    table = PAGE.read_text().split("## nats-py's own tests")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ((?:`\w+\.test_\w+` ?)+)\| (.+?) \|$", table, re.MULTILINE)
    return {name: why for names, why in rows for name in re.findall(r"`(.+?)`", names)}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """What is in the file of the tests."""
    folder = tmp_path_factory.mktemp("nats-py")
    (folder / "wanted.txt").write_text(PINNED)
    # It is not built: what it says of itself is enough for pip.
    pip = (
        sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check",
        "--no-deps", "--no-binary", "nats-py", "--no-build-isolation", "--require-hashes",
        "--requirement", "wanted.txt", "--dest", ".",
    )  # fmt: skip
    done = subprocess.run(
        pip, cwd=folder, capture_output=True, text=True, timeout=DOWNLOAD_S_MAX, check=False
    )
    if done.returncode:
        leave_out(INDEX, f"nats-py cannot be had from the package index: {done.stderr[-300:]}")
    with tarfile.open(next(folder.glob("*.tar.gz"))) as opened:
        (member,) = (each for each in opened if each.name.endswith("/tests/test_js.py"))
        file = opened.extractfile(member)
        assert file is not None
        yield file.read().decode()


def names_in(source: str) -> list[str]:
    """The tests that are meant, as CLASS.TEST."""
    found, of = [], ""
    for match in TEST.finditer(source):
        of = match[1] or of
        if match[2] and (of in CLASSES or f"{of}.{match[2]}" in BESIDE):
            found.append(f"{of}.{match[2]}")
    return found


async def passes(folder: Path, name: str) -> tuple[bool, str]:
    """Run one of them in a process of its own; whether it passed, and what it said."""
    node = "test_js.py::" + name.replace(".", "::")
    plugins = ("-p", "support.nats_py_names", "-p", "no:asyncio", "-p", "no:cacheprovider")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", ".", *plugins, node,
        cwd=folder, env=os.environ | {"PYTHONPATH": str(REPO / "tests")}, start_new_session=True,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(TEST_S_MAX):
            said, _ = await process.communicate()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # its daemon too
        await process.wait()
    return process.returncode == 0, said.decode(errors="replace")


@only_in_proof
@pytest.mark.slow("some forty programs begin a daemon each, and wait for what does not come")
async def test_those_that_apply_pass_and_the_others_do_not(archive: str, tmp_path: Path) -> None:
    names = names_in(archive)
    changed, count = LEFT_OUT.subn(r"\1pass", archive)
    assert (len(names), count) == (36, LEFT_OUT_LINES)
    (tmp_path / "test_js.py").write_text(changed)
    at_once = asyncio.Semaphore(AT_ONCE)

    async def told(name: str) -> tuple[bool, str]:
        async with at_once:
            return await passes(tmp_path, name)

    results = dict(zip(names, await asyncio.gather(*map(told, names)), strict=True))
    not_stated = {
        name: said
        for name, (passed, said) in results.items()
        if not passed and name not in stated()
    }
    assert not_stated == {}
    assert {name for name, (passed, _) in results.items() if passed} & stated().keys() <= RACES


def test_each_that_does_not_apply_has_a_reason() -> None:
    assert len(stated()) == len({*stated()}) > 0
    assert [name for name, why in stated().items() if len(why.split()) < 5] == []
