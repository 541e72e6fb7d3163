from dss_sim.groups.randomness import Randomness


def struck(seed: int, kept: frozenset[tuple[str, int]] | None = None) -> list[tuple[str, int]]:
    chance = Randomness(seed, {"lose": 0.3}, kept)
    for _ in range(100):
        chance.strike("lose")
    return chance.struck


def test_a_seed_strikes_where_it_struck_before_and_another_elsewhere() -> None:
    assert struck(1) == struck(1)
    assert struck(1) != struck(2)
    assert 10 < len(struck(1)) < 60


def test_a_kept_part_of_the_tape_strikes_alone_with_the_details_that_it_had() -> None:
    whole, part = (
        Randomness(1, {"lose": 0.3}),
        Randomness(1, {"lose": 0.3}, frozenset(struck(1)[1:2])),
    )
    details = {at: found.random() for at in range(100) if (found := whole.strike("lose"))}
    again = {at: found.random() for at in range(100) if (found := part.strike("lose"))}
    assert len(again) == 1
    assert again.items() <= details.items()


def test_nothing_strikes_that_has_no_rate_or_once_it_is_calm() -> None:
    chance = Randomness(1, {"lose": 1.0})
    assert chance.strike("double") is None
    assert chance.strike("lose") is not None
    chance.calm()
    assert chance.strike("lose") is None
