from pathlib import Path

import pytest

from dss_bulk.transform_params import FUNCTION_BYTES_MAX, TransformParams
from dss_core.errors import FunctionRefused


def test_the_text_of_a_function_is_kept_and_nothing_of_it_is_run(tmp_path: Path) -> None:
    path = tmp_path / "mend.py"
    path.write_text("raise RuntimeError\n\ndef mended(records):\n    return records\n")
    params = TransformParams.of_file(f"{path}:mended")
    assert params == TransformParams("mended", path.read_text(), str(path))
    assert TransformParams.from_json(params.to_json()) == params


@pytest.mark.parametrize(
    ("text", "name", "said"),
    [
        ("def other(records): ...", "mended", "no function mended"),
        ("mended = 1", "mended", "no function mended"),
        ("def mended(:", "mended", "no Python"),
        ("def mended(x): ...\n" + "#" * FUNCTION_BYTES_MAX, "mended", "more than"),
        ("def mended(x): ...", "not a name", "FILE.py:NAME"),
    ],
)
def test_a_file_that_does_not_define_it_is_refused(
    tmp_path: Path, text: str, name: str, said: str
) -> None:
    path = tmp_path / "mend.py"
    path.write_text(text)
    with pytest.raises(FunctionRefused, match=said):
        TransformParams.of_file(f"{path}:{name}")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FunctionRefused, match="No such file"):
        TransformParams.of_file(f"{tmp_path / 'no.py'}:mended")
