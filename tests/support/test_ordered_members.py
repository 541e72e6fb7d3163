"""The judge of ordered groups finds each way in which the order of a key may be broken."""

from support.ordered_members import BEGAN, DONE, FAILED, Life, Told, done, inversions

KEYS = ["a", "b", "a", None, "a"]


def told(*lives: str) -> Told:
    """Lives with these reports: what, number and moment of each, separated by commas."""
    heard = Told()
    for number, said in enumerate(lives):
        life = Life(number)
        for line in said.split(", "):
            what, record, at_ns = line.split()
            life.note(what, int(record), int(at_ns))
        heard.lives.append(life)
    return heard


def test_what_comes_again_from_the_first_that_was_not_done_is_in_order() -> None:
    heard = told(
        f"{BEGAN} 0 1, {BEGAN} 1 2, {DONE} 0 3, {BEGAN} 2 4",
        f"{BEGAN} 0 5, {DONE} 0 6, {BEGAN} 2 7, {DONE} 2 8, {BEGAN} 4 9, {DONE} 4 10",
    )
    assert inversions(heard, KEYS) == []
    assert done(heard) == {0, 2, 4}


def test_a_record_before_an_earlier_one_of_its_key_is_found() -> None:
    heard = told(f"{BEGAN} 0 1, {FAILED} 0 2, {BEGAN} 2 3, {DONE} 2 4")
    assert inversions(heard, KEYS) == ["2 of a came before 0"]
    assert inversions(heard, KEYS, passable={0}) == []
    assert inversions(heard, KEYS[:1] + [None] * 4) == []


def test_two_of_a_key_at_a_time_are_found_in_one_process_and_in_two() -> None:
    one = told(f"{BEGAN} 0 1, {BEGAN} 0 2, {DONE} 0 3")
    assert inversions(one, KEYS) == ["0 of a came while another was out"]
    two = told(f"{BEGAN} 0 1, {DONE} 0 4", f"{BEGAN} 0 2, {DONE} 0 3")
    assert inversions(two, KEYS) == ["0 of a was out beside another"]
