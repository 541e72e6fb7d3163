"""Token files and lists of endpoints, whatever is in them."""

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dss_client._credentials import TOKEN_BYTES_MAX, TokenFile, credentials_of
from dss_client._endpoint import resolve
from dss_core.errors import DssError, IllegalConfig
from support.proof_share import share

EXAMPLES = share(200, 30_000)
ALIKE = settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.function_scoped_fixture])


@ALIKE
@given(st.binary(max_size=64) | st.just(b"dss_" + b"x" * TOKEN_BYTES_MAX))
def test_a_token_file_holds_a_token_that_metadata_can_carry_or_is_refused(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "token"
    path.touch(0o600)
    path.write_bytes(content)
    try:
        token = TokenFile(path).token()
    except IllegalConfig:
        return
    assert token.isascii()
    assert token.isprintable()
    assert token == token.strip()


PIECES = st.sampled_from(
    ["dss://", "unix:", "/d,e", "a.example", "127.0.0.1", "[::1]", ":1", ":", ",", " ", "localhost"]
)


@ALIKE
@given(st.lists(PIECES, min_size=1, max_size=9).map("".join))
def test_a_token_goes_by_no_way_that_is_bare(tmp_path: Path, text: str) -> None:
    try:
        endpoint = resolve(text)
        credentials_of(endpoint, token_file=tmp_path / "token")
    except DssError:
        return
    for way in endpoint.ways:
        host = way.target.rpartition(":")[0].strip("[]")
        assert way.tls or way.is_local or host in ("127.0.0.1", "::1", "localhost")
