"""What a run says is kept within bounds, its beginning and its end."""

from dssd.schedules.run_output import (
    OUTPUT_LINE_BYTES_MAX,
    RUN_OUTPUT_BYTES_MAX,
    RUN_OUTPUT_LINES_MAX,
    RunOutput,
)


def said(*lines: str) -> list[str]:
    output = RunOutput()
    for line in lines:
        output(line)
    return output.lines


def test_a_few_lines_are_kept_as_they_are() -> None:
    assert said("one", "two") == ["one", "two"]


def test_of_many_lines_the_first_and_the_last_are_kept_and_the_rest_is_counted() -> None:
    lines = [f"line {number}" for number in range(1_000)]
    kept = said(*lines)
    assert len(kept) <= RUN_OUTPUT_LINES_MAX + 1
    assert (kept[0], kept[-1]) == ("line 0", "line 999")
    [between] = [line for line in kept if line.startswith("… ")]
    assert int(between.split()[1]) == len(lines) - (len(kept) - 1)


def test_bytes_are_bounded_too_whatever_they_are() -> None:
    kept = said(*["ü" * 1_000] * 500)
    assert sum(len(line.encode()) + 1 for line in kept) <= RUN_OUTPUT_BYTES_MAX + 50
    assert max(len(line.encode()) for line in kept) <= OUTPUT_LINE_BYTES_MAX


def test_a_line_is_one_line_and_can_be_stored() -> None:
    assert said("a\nb\tc\r\n", "\udcff") == ["a b c", "?"]
