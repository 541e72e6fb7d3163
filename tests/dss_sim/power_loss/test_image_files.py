"""Images as files."""

from pathlib import Path

from dss_sim.power_loss.image import Content, Image
from dss_sim.power_loss.image_files import fast_directory, read_image, write_image

IMAGE = Image(
    {"a": Content(b"x", 10_000), "d/e/b": Content(b"", 0), "d/zeros": Content(b"", 7)},
    frozenset({"d", "d/e", "empty"}),
)


def test_an_image_comes_back_from_its_files(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write_image(Image({"stranger": Content(b"", 1)}, frozenset()), root)
    write_image(IMAGE, root)
    assert read_image(root) == IMAGE
    assert (root / "a").read_bytes() == b"x" + bytes(9_999)


def test_digests_tell_images_apart() -> None:
    others = [
        Image({}, IMAGE.directories),
        Image(IMAGE.files, frozenset({"d", "d/e"})),
        Image(IMAGE.files | {"a": Content(b"x", 10_001)}, IMAGE.directories),
    ]
    digests = {image.digest() for image in (IMAGE, *others)}
    assert len(digests) == 4


def test_a_fast_directory_is_gone_afterwards() -> None:
    with fast_directory() as directory:
        (directory / "f").touch()
    assert not directory.exists()
