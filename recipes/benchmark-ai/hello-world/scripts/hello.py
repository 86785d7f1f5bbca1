"""A benchmark as Benchmark AI knows them: some numbers by emit(), others as text on standard error."""

import random
import sys
import time

from benchmarkai import emit

random.seed(7)
loss = 2.0
for epoch in range(5):
    begin = time.perf_counter()
    rows = [[random.random() for _ in range(60)] for _ in range(60)]
    total = sum(a * b for row in rows for a, b in zip(row, reversed(row)))
    loss *= 0.7
    emit({"epoch": epoch, "train_loss": loss, "accuracy": 1 - loss / 4})
    sys.stderr.write("elapsed: %.6f\n" % (time.perf_counter() - begin))
