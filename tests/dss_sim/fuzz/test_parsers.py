"""A sample of the fuzzing, and that it sees what it is to see."""

import subprocess
import sys
from time import process_time

import pytest

from dss_core.errors import IllegalArgument
from dss_sim.fuzz import parser as module
from dss_sim.fuzz.__main__ import main
from dss_sim.fuzz.catalogue import PARSERS
from dss_sim.fuzz.parser import Parser, run
from dssd.rpc.principal import METHOD_ROLES
from support.proof_share import only_in_proof

INPUTS = 60


# Of a row that is short and no UTF-8, Arrow warns, and refuses the file.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("parser", PARSERS, ids=[each.name for each in PARSERS])
def test_what_others_wrote_is_taken_or_refused_by_a_named_condition(parser: Parser) -> None:
    ran = run(parser, 1, inputs=INPUTS)
    assert ran.found is None
    assert ran.inputs == INPUTS


def broken(data: bytes) -> None:
    """Refuses what has no digit, and has a mistake behind that."""
    if not any(each in b"0123456789" for each in data):
        raise IllegalArgument(argument="data", rule="it has a digit")
    assert b"\xff" not in data


BROKEN = Parser("broken", lambda: [b"abc 1"], broken)


def test_a_mistake_is_found_and_met_again_by_its_seed_and_number() -> None:
    found = run(BROKEN, 7, inputs=10_000).found
    assert found is not None
    assert b"\xff" in found.data
    again = run(BROKEN, 7, inputs=found.number).found
    assert again == found
    assert run(BROKEN, 7, inputs=found.number - 1).found is None


def test_an_input_that_takes_a_processor_for_long_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "INPUT_S_MAX", 0.01)

    def slow(data: bytes) -> None:
        ends_at = process_time() + 0.02
        while data != b"abc" and process_time() < ends_at:
            pass

    found = run(Parser("slow", lambda: [b"abc"], slow), 1, inputs=5).found
    assert found is not None
    assert "it took" in found.why


def test_a_run_for_a_time_ends_by_itself() -> None:
    parser = Parser("quick", lambda: [b"abc"], len)
    assert run(parser, 1, seconds=0.05).inputs > 0


KILLED = """
import os, sys
from dss_sim.fuzz import __main__ as command
from dss_sim.fuzz.parser import Parser

command.BY_NAME["deadly"] = Parser("deadly", lambda: [b"abc"], lambda d: d == b"abc" or os.abort())
sys.exit(command.main(["--parser", "deadly", "--seed", "1", "--inputs", "9"]))
"""


@only_in_proof
@pytest.mark.slow("a process that starts from nothing")
def test_a_parser_that_kills_its_process_is_found() -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, check=False)
    assert ended.returncode == 1
    assert b"FOUND its process ended with -6" in ended.stdout
    assert b"--parser 'deadly' --seed 1 --inputs 1" in ended.stdout


@pytest.mark.parametrize("seconds", ["0", "-1", "86401"])
def test_a_time_that_never_ends_is_refused(seconds: str) -> None:
    with pytest.raises(SystemExit):
        main(["--seconds", seconds])


def test_every_service_has_its_requests_fuzzed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list"]) == 0
    listed = capsys.readouterr().out.splitlines()
    services = {each.split("/")[1].rpartition(".")[2] for each in METHOD_ROLES if "dss_api" in each}
    assert {f"requests of {each}" for each in services} <= set(listed)
