"""Parsers of frames and files: what producers and drivers send, and what a disk gives back."""

import base64
import json
import struct
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import xxhash

from dss_bulk.csv_rows import read_csv
from dss_bulk.json_rows import read_json_lines
from dss_bulk.row_rule import RowRule
from dss_client._credentials import TokenFile
from dss_core.backups import manifest
from dss_core.build import build_frame
from dss_core.columns import Columns
from dss_core.decode import decode
from dss_core.errors import DssError, InputRefused
from dss_core.frame import HEADER_BYTES, headers_of, stamped, verify, verify_stored, whole_frames
from dss_core.frames_together import examine_together
from dss_core.staged import BadStagedFile, StagedFor, StagedWriter, staged_frames
from dss_core.subject_table import encoded_subject, verified_subjects
from dss_sim.fuzz.parser import InFile, Parser
from dssctl.config.document import configuration_of
from dssctl.input_records import Fields, json_parser
from dssd.clock import Clock
from dssd.config import configure
from dssd.life import LIFE_NAME, Life
from dssd.log.recent_sequences import FirstAnswer
from dssd.log.segment import index_file
from dssd.log.segment.file import SegmentId
from dssd.log.segment.run_index import Run, StreamRuns
from dssd.log.sequences import BadSnapshot, Producers, SnapshotPosition
from dssd.rpc.certificate_times import NoCertificateError, not_after_ms

SIZES = (1, 3, 32)
"""Records of a frame: few are laid out as rows, many as Arrow columns."""
STORAGE_TOPIC = 4
SEGMENT = SegmentId(STORAGE_TOPIC, 1)
STAGED = StagedFor(7, 1, STORAGE_TOPIC)
RULE = RowRule(topic="orders", key="k", subject="orders/{s}", order=("k",), types=(("n", "int64"),))


def produced() -> Sequence[bytes]:
    """Frames as producers send them."""
    return [_frame(each) for each in SIZES]


def _frame(records: int) -> bytes:
    columns = Columns(
        payloads=[b"p%d" % row for row in range(records)],
        keys=[b"key" if row % 3 else None for row in range(records)],
        subjects=[f"s/{row % 2}" for row in range(records)],
        headers=[(("h", b"1"),) if row % 5 == 0 else None for row in range(records)],
        timestamps_us=5,
    )
    return build_frame(columns, partition=0, producer_id=bytes(range(16)), sequence=0)


def _stored(frame: bytes) -> bytes:
    stamp = stamped(
        frame, base_offset=1, append_time_us=2, topic_epoch=3, storage_topic_id=STORAGE_TOPIC
    )
    return stamp + frame[HEADER_BYTES:]


def _sealed(frame: bytes) -> bytes:
    """With a checksum of the body that fits."""
    digest = xxhash.xxh3_64_intdigest(frame[:44] + frame[84:])
    return frame[:44] + struct.pack("<Q", digest) + frame[52:]


def _stamped(frame: bytes) -> bytes:
    """With both checksums."""
    sealed = _sealed(frame)
    return sealed[:76] + struct.pack("<Q", xxhash.xxh3_64_intdigest(sealed[:76])) + sealed[84:]


def _take_frame(frame: bytes) -> None:
    """What a daemon takes, it stores; and what it stores, a client reads."""
    verify(frame)
    examine_together([frame])
    stored = _stored(frame)
    for rows in decode(stored).rows():
        list(rows)
    assert whole_frames(stored, 0, STORAGE_TOPIC)


def _take_stored(frames: bytes) -> None:
    """What a disk gives back is looked at as far as its checksums go."""
    whole_frames(frames, 0, STORAGE_TOPIC)
    headers_of(frames)
    verify_stored(frames)


def _indexes() -> Sequence[bytes]:
    runs = StreamRuns()
    for number in range(40):
        run = Run(number * 10, number * 10 + 10, number * 100, 50, number * 7, 0)
        runs.put(run, run.time_us)
    return [index_file.encode(SEGMENT, 100_000, {3: runs, 5: runs}, 80)]


def _take_index(content: bytes) -> None:
    summary = index_file.decode_summary(content[: index_file.summary_bytes(content)], SEGMENT)
    index_file.decode_runs(content, summary)


def _snapshots() -> Sequence[bytes]:
    producers = Producers(STORAGE_TOPIC)
    for sequence in range(6):
        producers.stored(0, b"a" * 16, sequence, FirstAnswer(sequence, 1, 100))
    return [producers.encode(SnapshotPosition(STORAGE_TOPIC, 1, 64))]


def _manifests() -> Sequence[bytes]:
    file = manifest.BackedUpFile("store.sqlite", 7, "0" * 32)
    made = manifest.Manifest(
        number=1,
        incarnation="0" * 32,
        taken_at_us=1_700_000_000_000_000,
        version="0.1.0",
        store_format=18,
        directory_format=1,
        files=(file,),
        ends={2: (10, 20)},
    )
    return [manifest.encoded(made)]


def _summed(content: bytes) -> bytes:
    """A manifest whose checksum fits, where it is one at all."""
    try:
        values = json.loads(content)
        del values["checksum"]
        said = json.dumps(values, sort_keys=True, separators=(",", ":")).encode()
        return json.dumps({**values, "checksum": xxhash.xxh3_128_hexdigest(said)}).encode()
    except (ValueError, KeyError, TypeError, RecursionError):
        return content


def _staged() -> Sequence[bytes]:
    with TemporaryDirectory() as folder, StagedWriter(Path(folder), STAGED) as writer:
        writer.add(Columns([b"1", b"2"], [b"k", None], "s/1", None, 5), 0)
        return [Path(folder, writer.finish().name).read_bytes()]


def _take_staged(path: Path) -> None:
    for frames in staged_frames(path, STAGED, path.stat().st_size, 1 << 16):
        for frame in frames:
            verify(bytes(frame))


def _certificates() -> Sequence[bytes]:
    def tagged(tag: int, *parts: bytes) -> bytes:
        body = b"".join(parts)
        return bytes((tag, len(body))) + body

    times = tagged(0x17, b"250101000000Z"), tagged(0x17, b"300101000000Z")
    named = tagged(0x30), tagged(0x30), tagged(0x30, *times), tagged(0x30)
    content = tagged(0x30, tagged(0x30, tagged(0xA0, tagged(2, b"\x02")), tagged(2, b"1"), *named))
    lines = base64.encodebytes(content)
    return [b"-----BEGIN CERTIFICATE-----\n" + lines + b"-----END CERTIFICATE-----\n"]


def _take_token(path: Path) -> None:
    token = TokenFile(path).token()
    assert token.isascii()
    assert token.isprintable()
    assert token == token.strip()


_DAEMONS_FILE = b"""data_dir = "/var/lib/dssd"
listen = ["unix:/run/s", { address = "0.0.0.0:7233", tls = true, clients = "tokens" }]
metrics = "127.0.0.1:9464"
tls_cert = "cert.pem"
tls_key = "key.pem"
log_format = "json"
[backup]
directory = "/backups"
keep = 3
"""
_TOOLS_FILE = b"""[contexts.prod]
endpoint = "dss://a.example:7233"
token_file = "~/prod.token"
tls_ca = "ca.pem"
protected = true
default_output = "wide"
[defaults."groups ls"]
sort = "lag"
[aliases]
slow = "groups ls --filter lag>1000"
"""

FILES: tuple[Parser, ...] = (
    Parser("frames of producers", produced, _take_frame, sealed=_sealed),
    Parser("stored frames", lambda: [*map(_stored, produced())], _take_stored, sealed=_stamped),
    Parser(
        "subject tables",
        lambda: [b"\x02" + encoded_subject("orders/eu") + encoded_subject("s")],
        lambda data: verified_subjects(data[1:], data[0] if data else 0),
    ),
    Parser(
        "indexes of segments",
        _indexes,
        _take_index,
        (index_file.BadIndex,),
    ),
    Parser("snapshots of producers", _snapshots, Producers.decode, (BadSnapshot,)),
    Parser(
        "manifests of backups",
        _manifests,
        lambda data: manifest.decoded(data, "backup"),
        sealed=_summed,
        is_json=True,
    ),
    Parser("staged files", _staged, InFile(_take_staged), (DssError, BadStagedFile)),
    Parser("certificates", _certificates, not_after_ms, (NoCertificateError,)),
    Parser(
        "token files",
        lambda: [b"dss_" + b"x" * 43 + b"\n"],
        InFile(_take_token),
    ),
    Parser(
        "files of a daemon's configuration",
        lambda: [_DAEMONS_FILE],
        InFile(lambda path: configure(data_dir=None, listen=(), file=path)),
        pieces=(b"listen", b"[backup]", b"clients", b"tls = true", b"= [", b"{ address"),
    ),
    Parser(
        "files of the tool's configuration",
        lambda: [_TOOLS_FILE],
        lambda data: configuration_of(Path("config.toml"), data),
        pieces=(b"[contexts.", b"endpoint", b"[defaults]", b"alias", b" = [", b"{", b"1979-05-27"),
    ),
    Parser(
        "files of a daemon's life",
        lambda: [b'{"how": "running", "at_ms": 5, "reason": "", "boot": "b"}'],
        InFile(lambda path: Life(path.parent, Clock()).__enter__(), LIFE_NAME),
        (),
        is_json=True,
    ),
    Parser(
        "rows of CSV",
        lambda: [b'k,s,n\n1,"a ""b""",2\n2,c,3\n'],
        InFile(lambda path: read_csv(path, (("n", "int64"),))),
        (InputRefused, OSError, pa.ArrowException, ValueError),
        pieces=(b'"', b",", b"\r\n", b'""', b",,"),
    ),
    Parser(
        "rows of JSON lines",
        lambda: [b'{"k": "1", "s": "a", "n": 2}\n{"k": "2", "s": "b", "n": 3}\n'],
        InFile(lambda path: read_json_lines(path, RULE)),
        pieces=(b'"k"', b'"s"', b"[", b"{", b"}", b"\\ud800"),
    ),
    Parser(
        "records that the tool is given",
        lambda: [b'{"payload": "a", "key": "k", "headers": [{"name": "h", "value": "1"}]}'],
        lambda data: json_parser(Fields(None, None, None), None, None)(1, data),
        pieces=(b'"payload_base64"', b'"key_base64"', b"\\ud800", b"[["),
        is_json=True,
    ),
)
