"""Files of a backfill and the expected result for each row, for the tests of every engine.

Each row is one record or one reject with its reason; or the whole file is refused, with a reason.
"""

import gzip
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dss_bulk.row_rule import RowRule

TOO_LONG = b"x" * (3 << 20)


_BY_KEY = RowRule("t", "k")


@dataclass(frozen=True)
class Case:
    """One file, by one rule."""

    name: str
    """The end of the file's name; before it stands what tells cases of one kind apart."""
    content: bytes | pa.Table
    records: Sequence[tuple[bytes | None, bytes]] = ()
    """Key and payload."""
    rejects: Mapping[int, str] = field(default_factory=dict)
    """Words of the reason, by row."""
    refused: str = ""
    """Words of the reason for which the file is refused."""
    rule: RowRule = _BY_KEY
    times_us: Sequence[int] = ()
    """Checked only where a case is about them."""

    def write(self, folder: Path) -> Path:
        """Write the file; its path."""
        path = folder / self.name.rpartition(" ")[2]
        if isinstance(self.content, bytes):
            path.write_bytes(self.content)
        else:
            pq.write_table(self.content, path)
        return path


def _table(**columns: object) -> pa.Table:
    return pa.table(columns)


_ROW = (b"a", b'{"k":"a","n":"1"}')
_LINE = (b"a", b'{"k":"a"}')
_TWO = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"])], names=["k", "k"])
_NO_UTF8 = pa.Array.from_buffers(pa.utf8(), 2, pa.array([b"\xff", b"a"]).buffers())

CASES = (
    Case(
        "values of CSV are their text, x.csv",
        b"k,n\n00501,0.10\n501,12345678901234567890\nNaN,null\n",
        [
            (b"00501", b'{"k":"00501","n":"0.10"}'),
            (b"501", b'{"k":"501","n":"12345678901234567890"}'),
            (b"NaN", b'{"k":"NaN","n":"null"}'),
        ],
    ),
    Case(
        "nothing between commas is none, and no text: x.csv",
        b'k,n\n,1\n"",2\na,\n',
        [(b"", b'{"k":"","n":"2"}'), (b"a", b'{"k":"a","n":null}')],
        {0: "its key k is null"},
    ),
    Case(
        "types are those that are said: x.csv",
        b"k,n,d,at\n007,1.50,2013-01-02,2020-01-01T02:00:00+02:00\n8,,,\n9,x,0,2020-01-01T00:00:00\n",
        [
            (b"7", b'{"k":7,"n":"1.50","d":"2013-01-02","at":"2020-01-01T00:00:00+00:00"}'),
            (b"8", b'{"k":8,"n":null,"d":null,"at":null}'),
        ],
        {2: "its n is no decimal128(10, 2): x"},
        rule=RowRule(
            "t",
            "k",
            types=(
                ("k", "int64"),
                ("n", "decimal128(10, 2)"),
                ("d", "date32"),
                ("at", "timestamp[us, UTC]"),
            ),
        ),
    ),
    Case(
        "bytes that are said to be some, x.csv",
        "k\nMünchen\n".encode("latin-1"),
        [(b"M\xfcnchen", b'{"k":"4dfc6e6368656e"}')],
        rule=RowRule("t", "k", types=(("k", "binary"),)),
    ),
    Case(
        "times of CSV are ISO 8601, days or microseconds: x.csv",
        b"k,at\na,2020-01-01T02:00:00+02:00\na,20200101\na,1577836800000000\na,\na,soon\n",
        [
            (b"a", b'{"k":"a","at":"2020-01-01T02:00:00+02:00"}'),
            (b"a", b'{"k":"a","at":"20200101"}'),
            (b"a", b'{"k":"a","at":"1577836800000000"}'),
            (b"a", b'{"k":"a","at":null}'),
        ],
        {4: "its at is no time: soon"},
        rule=RowRule("t", "k", time="at"),
        times_us=[1_577_836_800_000_000] * 3 + [5],
    ),
    Case("a mark at the beginning, mark.csv", b"\xef\xbb\xbfk,n\r\na,1\r\n", [_ROW]),
    Case("the last line without an end, x.csv", b"k,n\na,1", [_ROW]),
    Case("names alone, x.csv", b"k,n\n"),
    Case("names alone that no line ends, x.csv", b"k,n"),
    Case(
        "quotes over lines, x.csv",
        b'k,n\na,"1\n""2"", 3"\n',
        [(b"a", b'{"k":"a","n":"1\\n\\"2\\", 3"}')],
    ),
    Case("a quote that is never closed, x.csv", b'k,n\na,1\nb,"2\nc,3\n', refused="not closed"),
    Case("a quote in the first of two, x.csv", b'k,n\na,1\n"b,2\nc,3\n', refused="not closed"),
    Case("NUL, x.csv", b"k,n\na\0,\0\n", [(b"a\0", b'{"k":"a\\u0000","n":"\\u0000"}')]),
    Case("Latin-1, x.csv", b"k,n\nM\xfcnchen,1\na,1\n", [_ROW], {0: "its k is not UTF-8"}),
    Case("names in Latin-1, x.csv", b"k,Gr\xf6\xdfe\na,1\n", refused="names in it are not UTF-8"),
    Case("UTF-16, x.csv", "k,n\na,1\n".encode("utf-16"), refused="it is UTF-16"),
    Case("gzip, x.csv", gzip.compress(b"k,n\na,1\n"), refused="compressed by gzip"),
    Case("nothing, x.csv", b"", refused="it is empty"),
    Case("blank lines, x.csv", b"\n\n\n", refused="it is empty"),
    Case("a name twice, x.csv", b"k,n,n\na,1,2\n", refused="names the column n twice"),
    Case("a name of ours, x.csv", b"k,__row\na,1\n", refused="must not have the name __row"),
    Case("a name like ours, x.csv", b"k,__v\na,1\n", [(b"a", b'{"k":"a","__v":"1"}')]),
    Case(
        "too few and too many values, x.csv",
        b"k,n\nb\n\nc,1,2\na,1\n",
        [_ROW],
        {0: "it has 1 value, its file has 2 columns", 1: "it has 3 values"},
    ),
    Case(
        "a row of three megabytes, x.csv",
        b"k,n\na,1\nb," + TOO_LONG + b"\na,1\n",
        [_ROW, _ROW],
        {1: "more than 1048576 bytes"},
    ),
    Case(
        "a thousand columns, x.csv",
        b"k" + b"".join(b",c%d" % n for n in range(999)) + b"\na" + b",1" * 999 + b"\nb,1\n",
        [(b"a", b'{"k":"a"' + b"".join(b',"c%d":"1"' % n for n in range(999)) + b"}")],
        {1: "it has 2 values"},
    ),
    Case(
        "lines of JSON are their own text, x.jsonl",
        b'{"k":"a","t":"2020-06-01T00:00:00+02:00","i":9007199254740993}\n'
        b'{"k":1.50, "e":1E400}\r\n{"k":true}\n\n  \n',
        [
            (b"a", b'{"k":"a","t":"2020-06-01T00:00:00+02:00","i":9007199254740993}'),
            (b"1.50", b'{"k":1.50, "e":1E400}'),
            (b"true", b'{"k":true}'),
        ],
    ),
    Case("a mark at the beginning, x.jsonl", b'\xef\xbb\xbf{"k":"a"}', [_LINE]),
    Case(
        "a field as payload is its own text, x.jsonl",
        b'{"k":"a", "p" : {"x": [1.10, "}"]} }\n{"k":"a","p":"\\u00e4"}\n'
        b'{"k":"a","p":1E5}\n{"k":"a"}\n',
        [(b"a", b'{"x": [1.10, "}"]}'), (b"a", "ä".encode()), (b"a", b"1E5"), (b"a", b"")],
        rule=RowRule("t", "k", payload="p"),
    ),
    Case(
        "the key as payload, x.jsonl",
        b'{"k":"a"}\n',
        [(b"a", b"a")],
        rule=RowRule("t", "k", payload="k"),
    ),
    Case(
        "no key, or none that is text, x.jsonl",
        b'{"n":1}\n{"k":null}\n{"k":[1]}\n{"k":{"a":1}}\n{"k":"a"}\n',
        [_LINE],
        {0: "k is null", 1: "k is null", 2: "its k is a list", 3: "its k is an object"},
    ),
    Case(
        "a field that no line has, x.jsonl", b'{"n":1}\n', refused="none of its lines has a field"
    ),
    Case(
        "no JSON, x.jsonl",
        b'{"k":NaN}\n{"n":[Infinity]}\n{"k":"a",}\n{"k":"a"} x\n"k"\n{"k":"a\0"}\n'
        b'{"k":"\xff"}\n{"k":"a"}\n',
        [_LINE],
        {0: "NaN", 1: "Infinity", **dict.fromkeys((2, 3, 5), "no JSON:"), 4: "object", 6: "UTF-8"},
    ),
    Case(
        "a name twice, x.jsonl",
        b'{"k":"a","k":"b"}\n{"k":"a","n":{"k":1}}\n{"k":"a","n":1,"n":-0}\n',
        [(b"a", b'{"k":"a","n":{"k":1}}'), (b"a", b'{"k":"a","n":1,"n":-0}')],
        {0: "it names k twice"},
    ),
    Case(
        "half a surrogate pair, x.jsonl",
        b'{"k":"\\ud800"}\n{"k":"a","n":"\\ud800"}\n',
        [(b"a", b'{"k":"a","n":"\\ud800"}')],
        {0: "half a surrogate pair"},
    ),
    Case(
        "nested too deeply, x.jsonl",
        b'{"k":"a","n":' + b"[" * 100_000 + b"]" * 100_000 + b'}\n{"k":"a"}\n',
        [_LINE],
        {0: "nested too deeply"},
    ),
    Case(
        "a number of five thousand digits, x.jsonl",
        b'{"k":' + b"9" * 5_000 + b'}\n{"k":-0}\n{"k":-12}\n{"k":"a","n":' + b"9" * 5_000 + b"}\n",
        [
            (b"9" * 5_000, b'{"k":' + b"9" * 5_000 + b"}"),
            (b"-0", b'{"k":-0}'),
            (b"-12", b'{"k":-12}'),
            (b"a", b'{"k":"a","n":' + b"9" * 5_000 + b"}"),
        ],
    ),
    Case(
        "a line of three megabytes, x.jsonl",
        b'{"k":"' + TOO_LONG + b'"}\n{"k":"a"}\n',
        [_LINE],
        {0: "bytes"},
    ),
    Case("an array, x.json", b' [{"k":"a"}]', refused="it is a JSON array"),
    Case("UTF-16, x.jsonl", '{"k":"a"}'.encode("utf-16"), refused="it is UTF-16"),
    Case(
        "numbers to be sorted, x.jsonl",
        b'{"k":"a","n":10}\n{"k":"b","n":9}\n',
        refused="say how it is sorted, as --types n=int64",
        rule=RowRule("t", "k", order=("n",)),
    ),
    Case(
        "times between microseconds, x.parquet",
        _table(k=["a", "b"], at=pa.array([1_577_836_800_000_000_123, None], pa.timestamp("ns"))),
        [
            (b"a", b'{"k":"a","at":"2020-01-01T00:00:00.000000123"}'),
            (b"b", b'{"k":"b","at":null}'),
        ],
        rule=RowRule("t", "k", time="at"),
        times_us=[1_577_836_800_000_000, 5],
    ),
    Case(
        "times of day, x.parquet",
        _table(
            k=["a", "b"],
            s=pa.array([3_600, None], pa.time32("s")),
            ns=pa.array([1, None], pa.time64("ns")),
            us=pa.array([1, None], pa.time64("us")),
        ),
        [
            (b"a", b'{"k":"a","s":"01:00:00","ns":"00:00:00.000000001","us":"00:00:00.000001"}'),
            (b"b", b'{"k":"b","s":null,"ns":null,"us":null}'),
        ],
    ),
    Case(
        "spans, x.parquet",
        _table(k=pa.array([-1_500, 90_000], pa.duration("ms"))),
        [(b"-PT1.5S", b'{"k":"-PT1.5S"}'), (b"PT90S", b'{"k":"PT90S"}')],
    ),
    Case(
        "a day of the year 10000, x.parquet",
        _table(k=["a", "b"], d=pa.array([2_932_897, 0], pa.int32()).cast(pa.date32())),
        [(b"b", b'{"k":"b","d":"1970-01-01"}')],
        {0: "its d has no text: 10000-01-01"},
    ),
    Case(
        "what is no number within a list, x.parquet",
        _table(k=["a", "b"], n=[[1.0, float("nan")], None], m=[{"x": float("inf")}, {"x": 1.5}]),
        [
            (b"a", b'{"k":"a","n":[1.0,null],"m":{"x":null}}'),
            (b"b", b'{"k":"b","n":null,"m":{"x":1.5}}'),
        ],
    ),
    Case(
        "a list as payload, x.parquet",
        _table(k=["a", "b"], n=[[1, 2], None]),
        [(b"a", b"[1,2]"), (b"b", b"")],
        rule=RowRule("t", "k", payload="n"),
    ),
    Case(
        "a number as payload, x.parquet",
        _table(k=["a", "b"], n=[1, None]),
        [(b"a", b"1"), (b"b", b"")],
        rule=RowRule("t", "k", payload="n"),
    ),
    Case(
        "a list as key, x.parquet",
        _table(k=[["a"], None], n=[1, 2]),
        [(None, b'{"k":null,"n":2}')],
        {0: "and no text"},
        rule=RowRule("t", "k", "keyless", "t/{k}x"),
    ),
    Case("text that is none, x.parquet", _table(k=_NO_UTF8), [_LINE], {0: "its k has no text"}),
    Case("a name twice, x.parquet", _TWO, refused="names the column k twice"),
    Case(
        "a type that is another, x.parquet",
        _table(k=["a"], n=[1]),
        refused="n is int64 in it, and not string",
        rule=RowRule("t", "k", types=(("n", "string"),)),
    ),
    Case(
        "types that were guessed when the job was made, x.csv",
        b"k,n,__v\n00501,0.10,1\n",
        [(b"501", b'{"k":501,"n":0.1}')],
        rule=RowRule("t", "k", types=None),
    ),
    Case(
        "types that were guessed when the job was made, x.jsonl",
        b'{"k":1,"n":0.10}\n{"k":2}\n',
        [(b"1", b'{"k":1,"n":0.1}'), (b"2", b'{"k":2,"n":null}')],
        rule=RowRule("t", "k", types=None),
    ),
    Case(
        "other values, x.parquet",
        _table(
            k=[Decimal("1.50")],
            d=[date(2013, 1, 2)],
            raw=[b"\xff"],
            h=pa.array([1.5], pa.float16()),
        ),
        [(b"1.50", b'{"k":"1.50","d":"2013-01-02","raw":"ff","h":1.5}')],
    ),
)
