"""What `make coverage` says of functions that no test reaches."""

from __future__ import annotations

from typing import Any

from tools.measure_coverage import find_unreached


def region(statements: int, *lines: int) -> dict[str, Any]:
    return {"summary": {"num_statements": statements}, "executed_lines": list(lines)}


def test_public_functions_of_the_whole_rooms_that_never_ran_are_named() -> None:
    functions = {
        "": region(10),
        "never_ran": region(3),
        "ran": region(3, 7),
        "Shape.never_ran": region(1),
        "Port.only_described": region(0),
        "_private": region(3),
        "_Hidden.method": region(3),
        "Shape.__len__": region(1),
    }
    report = {
        "files": {
            "src/prony/stats/means.py": {"functions": functions},
            "src/prony/report/table.py": {"functions": functions},
        }
    }
    assert list(find_unreached(report)) == [
        "src/prony/stats/means.py: never_ran",
        "src/prony/stats/means.py: Shape.never_ran",
    ]
