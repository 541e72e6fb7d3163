"""Putting one snippet in the place of another, by syntax."""

import ast
from pathlib import Path

import pytest

from dss_sim.mutants.anchors import replaced
from dss_sim.mutants.symbols import NotPlantable, Symbol, Symbols

SOURCE = """
def grant(state, now=time.now()):
    state.durable = False
    if state.heir is None:
        state.epoch += 1
        log("grant")
    try:
        send(state, epoch=state.epoch)
    except OSError:
        return None
    finally:
        close(state)
    match state.kind:
        case 1:
            await first(state)
    state.durable = False
    return state


TABLE = {(1, "a"): first, (1, "b"): second, **others, (2, "a"): first}


def other(state):
    log("grant")
"""


def symbol_in(folder: Path, source: str, name: str) -> Symbol:
    (folder / "pack").mkdir()
    (folder / "pack" / "lender.py").write_text(source)
    return Symbols(folder / "pack").find(name)


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("state.epoch", "0", "epoch=state.epoch", "epoch=0"),
        ("time.now()", "0", "now=time.now()", "now=0"),
        ("state.heir is None", "False", "state.heir is None", "False"),
        ("state.kind", "1", "match state.kind", "match 1"),
        ("await first(state)", "pass", "await first(state)", "pass"),
        ("return None", "raise", "return None", "raise"),
        ("close(state)", "return", "close(state)", "return"),
        ("state.epoch += 1", "", "        state.epoch += 1\n", ""),
        ("close(state)", "", "    finally:\n        close(state)\n", ""),
        ("return None", "", "return None", "pass"),
        (
            "\n    state.durable = False\n    return state\n",
            "return state",
            "state.durable = False\n    return state",
            "return state",
        ),
        (
            "state.epoch += 1\nlog('grant')",
            "log('grant')\nstate.epoch += 1",
            'state.epoch += 1\n        log("grant")',
            'log("grant")\n        state.epoch += 1',
        ),
    ],
)
def test_a_snippet_takes_the_place_of_another(
    tmp_path: Path, before: str, after: str, old: str, new: str
) -> None:
    assert SOURCE.count(old) == 1
    changed = replaced(symbol_in(tmp_path, SOURCE, "grant"), before, after)
    assert ast.unparse(changed) == ast.unparse(ast.parse(SOURCE.replace(old, new)))


@pytest.mark.parametrize(
    ("before", "after", "old", "new"),
    [
        ("{(1, 'b'): second}", "{(1, 'b'): first}", '"b"): second', '"b"): first'),
        ("{(1, 'a'): first}", "{}", '(1, "a"): first, ', ""),
        ("{**others, (2, 'a'): first}", "{**others}", ', (2, "a"): first', ""),
        ("second", "first", "second", "first"),
    ],
)
def test_a_dict_stands_for_entries_of_a_longer_one(
    tmp_path: Path, before: str, after: str, old: str, new: str
) -> None:
    changed = replaced(symbol_in(tmp_path, SOURCE, "TABLE"), before, after)
    assert ast.unparse(changed) == ast.unparse(ast.parse(SOURCE.replace(old, new)))


def test_a_whole_symbol_can_be_replaced(tmp_path: Path) -> None:
    symbol = symbol_in(tmp_path, SOURCE, "other")
    changed = replaced(symbol, "def other(state):\n    log('grant')", "other = log")
    assert ast.unparse(changed.body[-1]) == "other = log"


PLAIN = """
def grant(state):
    return (Act.SAVE, state.holder)
"""
COMMENTED = """
def grant( state ):
    # Why.
    return (
        Act.SAVE,  # what
        state.holder,
    )
"""
MOVED = """
class Lender:
    def grant(self, state):
        return Act.SAVE, state.holder
"""


@pytest.mark.parametrize("source", [PLAIN, COMMENTED, MOVED])
def test_only_syntax_counts(tmp_path: Path, source: str) -> None:
    changed = replaced(symbol_in(tmp_path, source, "grant"), "(Act.SAVE, state.holder)", "()")
    assert "return ()" in ast.unparse(changed)


@pytest.mark.parametrize(
    ("before", "times"),
    [
        ("state.durable = False", 2),
        ("state.durable = True", 0),
        ("state.durable", 0),
        ("log('grant')\nstate.epoch += 1", 0),
        ("{1: 2}", 0),
        ("state", 10),
    ],
)
def test_what_does_not_occur_once_is_refused_with_how_often_it_does(
    tmp_path: Path, before: str, times: int
) -> None:
    with pytest.raises(NotPlantable, match=rf"occurs {times} times in pack\.lender\.grant"):
        replaced(symbol_in(tmp_path, SOURCE, "grant"), before, "{}")


@pytest.mark.parametrize("before", ["", "return (", "case 1: pass"])
def test_what_is_no_snippet_is_refused(tmp_path: Path, before: str) -> None:
    with pytest.raises(NotPlantable):
        replaced(symbol_in(tmp_path, SOURCE, "grant"), before, "")


def test_the_symbol_stays_as_it_is(tmp_path: Path) -> None:
    symbol = symbol_in(tmp_path, SOURCE, "grant")
    before = ast.dump(symbol.module)
    replaced(symbol, "state.epoch += 1", "")
    assert ast.dump(symbol.module) == before
