import ast
from pathlib import Path

import pytest

from dss_sim.mutants.__main__ import table
from dss_sim.mutants.catalogue import MUTANTS
from dss_sim.mutants.planting import PACKAGE, Mutant, NotPlantable, mutated, planted
from dss_sim.mutants.trial import Found, main
from dss_sim.mutants.trying import SEEDS_MAX, TrialFailed, Verdict, tried

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

HARMLESS = Mutant("harmless", "nothing", "machines/start_point.py", "63) - 1", "63) - 1")
DOCS = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


def test_every_mutant_can_be_planted_and_is_still_a_program() -> None:
    for mutant in MUTANTS:
        ast.parse(mutated(mutant), mutant.name)


def test_names_are_unique_and_no_two_mutants_are_the_same() -> None:
    assert len(BY_NAME) == len(MUTANTS)
    assert len({(each.file, each.text, each.replacement) for each in MUTANTS}) == len(MUTANTS)


@pytest.mark.parametrize("text", ["no such text", "def "], ids=["never", "often"])
def test_a_text_that_does_not_occur_once_is_refused(text: str) -> None:
    with pytest.raises(NotPlantable):
        mutated(Mutant("misplaced", "a refactoring", "machines/leader/stream.py", text, ""))


def test_a_mutant_is_planted_into_a_copy_and_the_package_stays_as_it_is(tmp_path: Path) -> None:
    mutant = BY_NAME["claim without a new epoch"]
    before = (PACKAGE / mutant.file).read_text()
    planted(mutant, tmp_path)
    assert (tmp_path / "dssd" / mutant.file).read_text() == mutated(mutant)
    assert (PACKAGE / mutant.file).read_text() == before


@pytest.mark.parametrize("name", QUICK)
def test_a_seeded_bug_is_found_by_the_first_seeds(name: str) -> None:
    verdict = tried(BY_NAME[name], firsts=(0,), seeds_max=40)
    assert verdict.is_caught
    assert verdict.invariants == (QUICK[name],)


def test_a_change_without_effect_survives() -> None:
    assert tried(HARMLESS, firsts=(0,), seeds_max=3).found == (None,)


def test_a_copy_that_does_not_run_is_an_error() -> None:
    unread = Mutant("unread", "a typo", "testing/simulation/plan.py", "def plan_of(", "def plan_(")
    with pytest.raises(TrialFailed):
        tried(unread, firsts=(0,), seeds_max=1)


def test_a_process_that_imports_another_package_than_the_copy_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path), "dss_sim.groups.run", "1", "0"]) == 2
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


def test_the_documentation_names_every_mutant() -> None:
    text = DOCS.read_text()
    assert [name for name in BY_NAME if f"| {name} |" not in text] == []
