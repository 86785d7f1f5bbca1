"""Traces: three layouts, and every mistake with its file, line and key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prony.errors import InputError, NotFoundError
from prony.load.arrivals import Trace, read_trace

S = 10**9
BURSTGPT = """Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type
5,ChatGPT,472,18,490,Conversation log
45.5,ChatGPT,1087,230,1317,Conversation log
118,GPT-4,417,0,417,API log
"""
BURSTGPT_3 = """Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type
0.25,7,1.5,ChatGPT,10,20,30,Conversation log
0.5,7,,ChatGPT,30,40,70,Conversation log
"""
MOONCAKE = [
    {"timestamp": 0, "input_length": 6758, "output_length": 500, "hash_ids": [0, 1, 2]},
    {"timestamp": 3001, "input_length": 7322, "output_length": 490, "hash_ids": [0, 14]},
]


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def trace_of(tmp_path: Path, *rows: dict[str, Any]) -> Trace:
    return read_trace(written(tmp_path / "t.jsonl", *rows))


def test_mooncake_is_in_ms_and_is_told_by_its_first_line(tmp_path: Path) -> None:
    found = trace_of(tmp_path, *MOONCAKE)
    assert found.layout == "mooncake"
    assert found.dues_ns.tolist() == [0, 3_001_000_000]
    assert found.lengths.tolist() == [[6758, 500], [7322, 490]]


def test_burstgpt_is_in_seconds_with_or_without_its_sessions(tmp_path: Path) -> None:
    path = tmp_path / "burst.csv"
    path.write_text(BURSTGPT)
    found = read_trace(path)
    assert found.layout == "burstgpt"
    assert found.dues_ns.tolist() == [0, 40_500_000_000, 113 * S]
    assert found.lengths.tolist() == [[472, 18], [1087, 230], [417, 0]]
    path.write_bytes(b"\xef\xbb\xbf" + BURSTGPT_3.replace("\n", "\r\n").encode())
    assert read_trace(path).lengths.tolist() == [[10, 20], [30, 40]]


@pytest.mark.parametrize(
    ("key", "ns"),
    [("timestamp", 1e6), ("timestamp_ms", 1e6), ("time_ms", 1e6), ("timestamp_s", 1e9), ("time_s", 1e9)],
)
def test_each_key_of_a_time_has_its_unit(tmp_path: Path, key: str, ns: float) -> None:
    found = trace_of(tmp_path, {key: 10, "input_tokens": 3}, {key: 12.5, "output_tokens": 4})
    assert found.layout == "jsonl"
    assert found.dues_ns.tolist() == [0, 2.5 * ns]
    assert found.lengths.tolist() == [[3, -1], [-1, 4]]


def test_instants_of_a_calendar_lose_nothing_that_matters(tmp_path: Path) -> None:
    begin = 1_700_000_000_000
    found = trace_of(tmp_path, *({"timestamp": begin + 7 * i} for i in range(1000)))
    assert abs(int(found.dues_ns[-1]) - 999 * 7_000_000) < 1000


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**5)), min_size=1, max_size=30))
def test_requests_come_in_the_order_of_their_time_with_their_own_lengths(rows: list[tuple[int, int]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.jsonl"
        found = read_trace(written(path, *({"timestamp_ms": at, "input_length": size} for at, size in rows)))
    ordered = sorted(rows, key=lambda row: row[0])
    assert found.dues_ns.tolist() == [(at - ordered[0][0]) * 10**6 for at, _ in ordered]
    assert found.lengths[:, 0].tolist() == [size for _, size in ordered]


def test_empty_lines_are_passed_over_and_still_counted(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('\n{"timestamp": 1}\n\n{"timestamp": 5}\n')
    assert read_trace(path).dues_ns.tolist() == [0, 4_000_000]
    path.write_text('\n{"timestamp": 1}\n\n{"timestamp": -5}\n')
    with pytest.raises(InputError, match=r"t\.jsonl, line 4: timestamp is -5"):
        read_trace(path)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "line 2: not JSON"),
        ("[1]", "line 2: not a JSON object"),
        ('{"input_length": 3}', "line 2: the request has no time"),
        ('{"timestamp": NaN}', "line 2: timestamp is nan"),
        ('{"timestamp": Infinity}', "line 2: timestamp is inf"),
        ('{"timestamp": -1}', "line 2: timestamp is -1"),
        ('{"timestamp": true}', "line 2: timestamp is not a number: True"),
        ('{"time_s": "12:00"}', "line 2: time_s is not a number: '12:00'"),
        ('{"timestamp": 3, "input_length": -2}', "line 2: input_length is not a number of tokens: -2"),
        ('{"timestamp": 3, "output_tokens": 2.5}', "line 2: output_tokens is not a number of tokens: 2.5"),
        ('{"timestamp": 3, "output_tokens": NaN}', "line 2: output_tokens is not a number of tokens: nan"),
        ('{"timestamp": 3, "input_tokens": "9"}', "line 2: input_tokens is not a number of tokens: '9'"),
    ],
)
def test_a_mistake_is_told_with_its_file_line_and_key(tmp_path: Path, line: str, told: str) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text('{"timestamp": 0}\n' + line + "\n")
    with pytest.raises(InputError, match=told) as raised:
        read_trace(path)
    assert str(path) in raised.value.message
    assert raised.value.code == "bad_trace"


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("45.5,", "soon,", "line 3: Timestamp is not a number: 'soon'"),
        ("45.5,", "-45.5,", "line 3: Timestamp is -45.5"),
        ("45.5,", "nan,", "line 3: Timestamp is nan"),
        (",1087,", ",,", "line 3: Request tokens is not a number: ''"),
        (",230,", ",2.5,", "line 3: Response tokens is not a number of tokens: 2.5"),
        ("118,GPT-4,417", "118,417", "line 4: 5 columns, but the header has 6"),
    ],
)
def test_a_mistake_in_a_table_is_told_too(tmp_path: Path, old: str, new: str, told: str) -> None:
    path = tmp_path / "burst.csv"
    path.write_text(BURSTGPT.replace(old, new))
    with pytest.raises(InputError, match=told):
        read_trace(path)


def test_a_layout_that_is_named_is_insisted_upon(tmp_path: Path) -> None:
    path = written(tmp_path / "t.jsonl", {"timestamp": 1, "input_length": 3})
    with pytest.raises(InputError, match="line 1: output_length is missing"):
        read_trace(path, layout="mooncake")
    with pytest.raises(InputError, match="line 1: the column 'Timestamp' is missing"):
        read_trace(path, layout="burstgpt")


def test_what_is_no_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="trace not found"):
        read_trace(tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="cannot be read"):
        read_trace(tmp_path)
    path = tmp_path / "x"
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(InputError, match="cannot be read as text"):
        read_trace(path)
    for text in ("", "\n\n", "a,b,c\n1,2,3\n"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"the format of .* is unknown|has no requests"):
            read_trace(path)
    path.write_text(BURSTGPT.splitlines()[0] + "\n")
    with pytest.raises(InputError, match="has no requests"):
        read_trace(path)


def test_a_trace_of_more_years_than_can_be_counted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="years"):
        trace_of(tmp_path, {"time_s": 0}, {"time_s": 1e11})
