"""Histories as JSON lines in, the change points that otava finds after every run out; runs in otava's environment."""

import json
import sys
import time

from otava.analysis import compute_change_points


def main(first: int) -> None:
    for line in sys.stdin:
        values = json.loads(line)
        begin = time.process_time()
        found = []
        for end in range(first, len(values) + 1):
            points, _ = compute_change_points(values[:end])
            found += [(end - 1, int(point.index), bool(point.stats.mean_2 > point.stats.mean_1)) for point in points]
        print(json.dumps({"found": found, "cpu_s": time.process_time() - begin}), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
