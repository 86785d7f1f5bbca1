"""Fits a straight line by gradient descent, in plain Python: a script like any other, that tells its numbers."""

import random
import sys
import time

from prony import emit

POINTS, EPOCHS, RATE = 2_000, 12, 0.4

rng = random.Random(7)
xs = [rng.random() for _ in range(POINTS)]
ys = [3.0 * x + 0.5 + rng.gauss(0.0, 0.05) for x in xs]

slope = shift = 0.0
for epoch in range(EPOCHS):
    begin = time.perf_counter()
    errors = [slope * x + shift - y for x, y in zip(xs, ys)]
    slope -= RATE * sum(error * x for error, x in zip(errors, xs)) / POINTS * 2
    shift -= RATE * sum(errors) / POINTS * 2
    loss = sum(error * error for error in errors) / POINTS
    emit({"loss": loss, "epoch_ms": (time.perf_counter() - begin) * 1e3}, step=epoch)

print("slope=%.3f shift=%.3f" % (slope, shift), file=sys.stderr)
