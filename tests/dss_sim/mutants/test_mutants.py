from collections.abc import Iterator
from pathlib import Path

import pytest

from dss_sim.mutants import __main__ as program
from dss_sim.mutants import planting
from dss_sim.mutants.__main__ import table
from dss_sim.mutants.catalogue import GROUPS, MUTANTS
from dss_sim.mutants.planting import PACKAGE, Mutant, mutated, planted
from dss_sim.mutants.sampling import sampled
from dss_sim.mutants.symbols import NotPlantable
from dss_sim.mutants.trial import Found, main
from dss_sim.mutants.trying import SEEDS_MAX, TrialFailed, Verdict, tried
from support.proof_share import share

BY_NAME = {mutant.name: mutant for mutant in MUTANTS}
QUICK = {
    "grant before commit": "S3",
    "freed at the revoke": "S4",
    "connect response unknown": "I19",
    "claim without a new epoch": "S3",
    "departed admitted again": "S1",
    "gathering never ends": "L1",
}
"""Found by the first seeds, each by another part of the judge."""

HARMLESS = Mutant("harmless", "nothing", "start_point.OFFSET_MAX", "1 << 63", "1 << 63")
DOCS = Path(__file__).resolve().parents[3] / "docs" / "proof" / "mutants.md"


def test_what_every_mutant_changes_is_there_once() -> None:
    for mutant in MUTANTS:
        mutated(mutant)


def test_names_are_unique_and_no_two_mutants_are_the_same() -> None:
    assert len(BY_NAME) == len(MUTANTS)
    assert len({(each.symbol, each.before, each.after) for each in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize(
    ("symbol", "before"),
    [
        ("no_such_symbol", "True"),
        ("leader.stream._lend", "no_such_name"),
        ("leader.stream._lend", "state"),
    ],
)
def test_what_does_not_occur_once_is_refused_and_the_mutant_is_named(
    symbol: str, before: str
) -> None:
    with pytest.raises(NotPlantable, match="misplaced"):
        mutated(Mutant("misplaced", "a refactoring", symbol, before, ""))


def test_a_name_that_the_module_does_not_have_is_refused() -> None:
    symbol, before = "start_point.OFFSET_MAX", "1 << 63"
    mutated(Mutant("named", "nothing", symbol, before, "max(each for each in (1, 2))"))
    with pytest.raises(NotPlantable, match="misplaced: it knows no no_such_name"):
        mutated(Mutant("misplaced", "a refactoring", symbol, before, "no_such_name(1)"))


def test_a_mutant_is_planted_into_a_copy_and_the_package_stays_as_it_is(tmp_path: Path) -> None:
    changed = mutated(BY_NAME["claim without a new epoch"])
    file, source = changed.file, changed.source()
    before = (PACKAGE / file).read_text()
    planted(BY_NAME["claim without a new epoch"], tmp_path)
    assert (tmp_path / "dssd" / file).read_text() == source
    assert (PACKAGE / file).read_text() == before


def test_the_compiled_file_of_what_changed_stays_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "pack"
    (package / "__pycache__").mkdir(parents=True)
    for name in ("lender", "lent"):
        (package / f"{name}.py").write_text(f"def {name}_of():\n    return 1\n")
        (package / "__pycache__" / f"{name}.cpython-311.pyc").touch()
    monkeypatch.setattr(planting, "PACKAGE", package)
    planted(Mutant("zero", "nothing", "lender_of", "1", "0"), tmp_path / "copy")
    left = [path.name for path in (tmp_path / "copy" / "pack" / "__pycache__").iterdir()]
    assert left == ["lent.cpython-311.pyc"]


@pytest.mark.parametrize("name", list(QUICK)[:: share(3, 1)])
def test_a_seeded_bug_is_found_by_the_first_seeds(name: str) -> None:
    verdict = tried(BY_NAME[name], firsts=(0,), seeds_max=40)
    assert verdict.is_caught
    assert verdict.invariants == (QUICK[name],)


def test_a_change_without_effect_survives() -> None:
    assert tried(HARMLESS, firsts=(0,), seeds_max=3).found == (None,)


def test_a_copy_that_does_not_run_is_an_error() -> None:
    unread = Mutant("unread", "a typo", "start_point.OFFSET_MAX", "1 << 63", "1 // 0")
    with pytest.raises(TrialFailed):
        tried(unread, firsts=(0,), seeds_max=1)


def test_a_process_that_imports_another_package_than_the_copy_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "dssd", "dss_sim.groups.run", "1", "0"]) == 2
    assert "is not the copy" in capsys.readouterr().err


def test_the_table_names_what_caught_a_mutant_and_shows_a_survivor() -> None:
    found = Found(7, "S4", "S4: text")
    caught = Verdict(HARMLESS, (found, Found(40, "S3", "S3: text"), Found(9, "S4", "S4: text")))
    survived = Verdict(HARMLESS, (found, None, found))
    assert (caught.seeds, caught.invariants, caught.is_caught) == (9, ("S4", "S3"), True)
    assert not survived.is_caught
    lines = table([caught, survived]).splitlines()
    assert lines[2] == "| harmless | nothing | S4, S3 | 9 (7, 40, 9) |"
    assert lines[3] == "| harmless | nothing | S4 | survived (7, none, 7) |"
    assert Verdict(HARMLESS, (None,)).seeds == SEEDS_MAX


def test_a_sample_is_tried_from_one_first_seed_and_its_survivors_are_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def tried_all(
        mutants: list[Mutant], jobs: int, firsts: tuple[int, ...], seeds_max: int
    ) -> Iterator[Verdict]:
        assert (len(mutants), firsts, seeds_max) == (2, (0,), SEEDS_MAX)
        yield Verdict(mutants[1], (Found(7, "S4", "S4: text"),))
        yield Verdict(mutants[0], (None,))

    monkeypatch.setattr(program, "tried_all", tried_all)
    monkeypatch.setattr("sys.argv", ["mutants", "--sample", "2", "--turn", "3"])
    assert program.main() == 1
    survivor = sampled(GROUPS, 2, 3)[0].name
    assert capsys.readouterr().err == f"survived: {survivor}\n"


@pytest.mark.parametrize("arguments", [["--sample", "0"], ["--sample", "1", "mask ignored"]])
def test_a_sample_of_none_or_of_names_is_refused(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["mutants", *arguments])
    with pytest.raises(SystemExit):
        program.main()


def test_the_documentation_names_every_mutant() -> None:
    text = DOCS.read_text()
    assert [name for name in BY_NAME if f"| {name} |" not in text] == []
