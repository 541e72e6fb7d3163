"""What a disk may hold after a loss of power: examples, then laws over any steps."""

from itertools import chain, combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from dss_sim.power_loss.image import Image
from dss_sim.power_loss.model import SECTOR_BYTES, SIZE, Disk
from dss_sim.power_loss.operations import (
    MakeDirectory,
    OpenFile,
    Operation,
    Rename,
    Reserve,
    Resize,
    Rot,
    Step,
    Sync,
    SyncFailed,
    Unlink,
    Write,
)
from support.proof_share import share

ROOT = 0


def after(*operations: Operation, start: Image | None = None) -> Disk:
    """A disk after these, one after the other; handle 0 is the root."""
    disk = Disk(start)
    for at, operation in enumerate((OpenFile(ROOT, ""), *operations)):
        disk.apply(Step(operation, at, at))
    return disk


def images(disk: Disk) -> list[dict[str, bytes]]:
    """Every legal state of a disk on which little is pending."""
    pending = disk.pending()
    kept = {
        disk.closed(some)
        for some in chain.from_iterable(combinations(pending, n) for n in range(len(pending) + 1))
    }
    return [{path: bytes(file) for path, file in disk.image(atoms).files.items()} for atoms in kept]


def test_a_file_that_is_synced_is_lost_with_its_name_until_its_directory_is() -> None:
    written = (OpenFile(1, "f", create=True), Write(1, 0, b"x"), Sync(1))
    assert {} in images(after(*written))
    assert images(after(*written, Sync(ROOT))) == [{"f": b"x"}]


def test_bytes_and_size_of_a_write_arrive_in_any_order() -> None:
    disk = after(OpenFile(1, "f", create=True), Sync(ROOT), Write(1, 0, b"x"))
    found = images(disk)
    assert all(one in found for one in ({"f": b""}, {"f": b"\0"}, {"f": b"x"}))


def test_a_size_without_its_bytes_may_show_anything() -> None:
    disk = after(OpenFile(1, "f", create=True), Sync(ROOT), Write(1, 0, b"x" * 900))
    sizes = frozenset(atom for atom in disk.pending() if atom.part == SIZE)
    found = disk.image(sizes, Random(1)).files["f"]
    assert found.size == 900
    assert found.content.strip(b"\0")
    assert disk.image(sizes, Random(1)) == disk.image(sizes, Random(1))


def test_room_that_was_reserved_durably_shows_zeros() -> None:
    disk = after(
        *(OpenFile(1, "f", create=True), Reserve(1, 900), Sync(1), Sync(ROOT)),
        Write(1, 0, b"x" * 600),
    )
    assert bytes(disk.image(frozenset(), Random(1)).files["f"]) == bytes(900)


def test_a_sector_shows_the_cache_at_some_moment() -> None:
    disk = after(
        *(OpenFile(1, "f", create=True), Reserve(1, 4), Sync(1), Sync(ROOT)),
        *(Write(1, 0, b"ab"), Write(1, 2, b"cd")),
    )
    assert sorted(one["f"] for one in images(disk)) == [b"\0\0\0\0", b"ab\0\0", b"abcd", b"abcd"]


def test_a_sync_covers_only_what_had_returned_when_it_began() -> None:
    disk = after(OpenFile(1, "f", create=True), Sync(ROOT))
    disk.apply(Step(Write(1, 0, b"x"), began=10, ended=13))
    disk.apply(Step(Sync(1), began=12, ended=14))
    assert {"f": b""} in images(disk)
    disk.apply(Step(Sync(1), began=15, ended=16))
    assert images(disk) == [{"f": b"x"}]


def test_what_a_failed_sync_was_to_write_is_lost_whatever_is_synced_later() -> None:
    written = (OpenFile(1, "f", create=True), Sync(ROOT), Write(1, 0, b"x"), SyncFailed(1))
    later = (*written, Write(1, 600, b"y"), Sync(1))
    assert {bytes(one["f"])[:1] for one in images(after(*later))} == {b"\0", b"x"}
    assert {bytes(one["f"])[600:] for one in images(after(*later))} == {b"y"}


def test_what_is_written_anew_after_a_failed_sync_is_made_durable_by_the_next() -> None:
    written = (OpenFile(1, "f", create=True), Sync(ROOT), Write(1, 0, b"x"), SyncFailed(1))
    assert images(after(*written, Write(1, 0, b"x"), Sync(1))) == [{"f": b"x"}]
    assert images(after(*written, Resize(1, 0), Sync(1))) == [{"f": b""}]


def test_a_bit_rots_on_the_disk_and_on_its_way_there() -> None:
    written = (OpenFile(1, "f", create=True), Sync(ROOT), Write(1, 0, b"aa"), Sync(1))
    assert images(after(*written, Rot("f", 1, 1))) == [{"f": b"ac"}]
    disk = after(*written, Write(1, 0, b"b"), Rot("f", 1, 1), Write(1, 0, b"d"))
    assert {one["f"] for one in images(disk)} == {b"ac", b"bc", b"dc"}


def test_a_rename_in_a_directory_is_one_change() -> None:
    before = (OpenFile(1, "f", create=True), Sync(ROOT))
    assert {path for one in images(after(*before, Rename("f", "g"))) for path in one} == {"f", "g"}
    assert all(len(one) == 1 for one in images(after(*before, Rename("f", "g"))))


def test_a_rename_between_directories_may_show_both_names_and_never_none() -> None:
    disk = after(
        *(MakeDirectory("d"), OpenFile(1, "f", create=True), Sync(ROOT), OpenFile(2, "d")),
        Rename("f", "d/f"),
    )
    assert sorted(map(sorted, images(disk))) == [["d/f"], ["d/f", "f"], ["f"]]
    disk.apply(Step(Sync(2), 10, 11))
    assert sorted(map(sorted, images(disk))) == [["d/f"], ["d/f", "f"]]
    disk.apply(Step(Sync(ROOT), 12, 13))
    assert images(disk) == [{"d/f": b""}]


def test_names_of_a_directory_arrive_in_any_order_and_one_name_in_its_own() -> None:
    disk = after(OpenFile(1, "a", create=True), OpenFile(2, "b", create=True), Unlink("a"))
    assert sorted(map(sorted, images(disk))) == [[], [], ["a"], ["a", "b"], ["b"], ["b"]]


def test_a_cut_is_one_change_that_later_sizes_need() -> None:
    disk = after(
        *(OpenFile(1, "f", create=True), Write(1, 0, b"old"), Sync(1), Sync(ROOT)),
        *(Resize(1, 0), Write(1, 0, b"n")),
    )
    found = {one["f"] for one in images(disk)}
    assert b"old" in found
    assert {b"", b"\0", b"n"} <= found
    assert b"o" not in found


def test_an_image_can_be_gone_on_with() -> None:
    first = after(MakeDirectory("d"), OpenFile(1, "d/f", create=True), Write(1, 0, b"x"))
    image = first.image(frozenset(first.pending()))
    second = after(start=image)
    assert second.pending() == []
    assert second.image(frozenset()) == image
    assert second.image(frozenset()).digest() == image.digest()


NAMES = ("a", "b", "d/a", "d/b")
OFFSETS = st.integers(0, 3 * SECTOR_BYTES)
Choices = list[tuple[str | int | bytes, ...]]
CHOICES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.sampled_from(NAMES), OFFSETS, st.binary(max_size=1_200)),
        st.tuples(st.just("resize"), st.sampled_from(NAMES), OFFSETS),
        st.tuples(st.just("rename"), st.sampled_from(NAMES), st.sampled_from(NAMES)),
        st.tuples(st.just("unlink"), st.sampled_from(NAMES)),
        st.tuples(st.just("sync"), st.sampled_from((*NAMES, "", "d"))),
    ),
    max_size=14,
)


def played(choices: Choices) -> tuple[Disk, dict[str, bytearray]]:
    """A disk after the steps, and the files as a process sees them."""
    disk, seen = Disk(), dict[str, bytearray]()
    steps: list[Operation] = [MakeDirectory("d")]
    for handle, choice in enumerate(choices):
        match choice:
            case "write", str(name), int(offset), bytes(content) if content:
                steps += [OpenFile(handle, name, create=True), Write(handle, offset, content)]
                held = seen.setdefault(name, bytearray())
                held.extend(bytes(max(0, offset + len(content) - len(held))))
                held[offset : offset + len(content)] = content
            case "resize", str(name), int(size):
                steps += [OpenFile(handle, name, create=True), Resize(handle, size)]
                held = seen.setdefault(name, bytearray())
                held.extend(bytes(max(0, size - len(held))))
                del held[size:]
            case "rename", str(source), str(target) if source in seen and source != target:
                steps.append(Rename(source, target))
                seen[target] = seen.pop(source)
            case "unlink", str(name) if name in seen:
                steps.append(Unlink(name))
                del seen[name]
            case "sync", str(name) if name in seen or name in ("", "d"):
                steps += [OpenFile(handle, name), Sync(handle)]
    for at, step in enumerate(steps):
        disk.apply(Step(step, at, at))
    return disk, seen


@settings(max_examples=share(25, 200), deadline=None)
@given(CHOICES)
def test_with_all_that_is_pending_the_disk_holds_what_a_process_sees(
    choices: Choices,
) -> None:
    disk, seen = played(choices)
    found = disk.image(frozenset(disk.pending())).files
    assert {path: bytes(file) for path, file in found.items()} == seen


@settings(max_examples=share(25, 200), deadline=None)
@given(CHOICES)
def test_once_all_is_synced_nothing_else_can_be_found(choices: Choices) -> None:
    disk, seen = played(choices)
    for at, name in enumerate((*seen, "", "d"), 1_000):
        disk.apply(Step(OpenFile(at, name), at, at))
        disk.apply(Step(Sync(at), at + 1, at + 1))
    for kept in (frozenset(), frozenset(disk.pending())):
        found = disk.image(kept).files
        assert {path: bytes(file) for path, file in found.items()} == seen


@settings(max_examples=share(25, 200), deadline=None)
@given(CHOICES, st.randoms(use_true_random=False))
def test_what_must_have_come_before_is_kept_and_what_came_after_is_lost(
    choices: Choices, chance: Random
) -> None:
    disk, _ = played(choices)
    pending = disk.pending()
    some = [atom for atom in pending if chance.random() < 0.5]
    kept = disk.closed(some)
    assert set(some) <= kept
    assert disk.closed(kept) == kept
    left = disk.without(some)
    assert left.isdisjoint(some)
    assert disk.closed(left) & frozenset(pending) <= left
