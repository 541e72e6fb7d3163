"""The programs of `docs/other-languages.md` publish, built and started as the page has it."""

from pathlib import Path

import pytest

from support.page_blocks import blocks
from support.page_world import world
from support.prerequisites import INDEX, leave_out, need_program
from support.proof_share import only_in_proof

REPO = Path(__file__).resolve().parents[2]
FETCHES = ("go get", "go install", "npm install")


@only_in_proof
@pytest.mark.slow("a compiler of Go builds gRPC")
def test_programs_in_go_and_node_publish() -> None:
    for program in ("bash", "go", "node", "npm"):
        need_program(program)
    [main, publish] = blocks("docs/other-languages.md", "go", "js")
    with world() as at:
        at.dssctl("topics", "create", "orders", "--partitions", "4")
        (at.home / "main.go").write_text(main.text)
        (at.home / "publish.js").write_text(publish.text)
        at.names["$PWD/data"] = str(at.data)
        at.shell.run(f"export DSS={REPO} GOFLAGS='-modcacherw -buildvcs=false'")
        printed = ""
        for each in (
            each for block in blocks("docs/other-languages.md", "sh") for each in block.commands()
        ):
            code, said = at.typed(each)
            if code and each.command.startswith(FETCHES):
                leave_out(INDEX, f"{each.command} failed: {at.shell.errors()[-300:]}")
            assert code == 0, (each, at.shell.errors())
            printed += said
        assert printed.count("durable at orders/0/") == 2, printed
        assert '{"total": 12.5}' in at.dssctl("records", "peek", "orders")
