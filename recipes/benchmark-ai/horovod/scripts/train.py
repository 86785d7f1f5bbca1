"""One process of several: each trains on its part and tells its numbers; the variables say which one it is."""

import os
import time

from benchmarkai import emit

rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
for batch in range(3):
    begin = time.perf_counter()
    sum(number * number for number in range(rank, 200_000, size))
    emit({"batch": str(batch), "train_loss": "%.6f" % (1.0 / (batch + 1)), "batch_s": time.perf_counter() - begin})
