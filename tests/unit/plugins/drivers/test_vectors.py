"""Vectors come from their seed alone, and the exact answers are exact."""

from __future__ import annotations

import numpy as np
import pytest

from prony.plugins.drivers.vectors.driver import BLOCK, Floats, Metric, Vectors, exact_answers


def distance(question: Floats, vector: Floats, metric: Metric) -> float:
    """Return the distance as its definition says."""
    if metric == "l2":
        return float(np.linalg.norm(vector - question))
    product = float(vector @ question)
    return -product if metric == "dot" else 1 - product / float(np.linalg.norm(vector) * np.linalg.norm(question))


@pytest.mark.parametrize("metric", ["l2", "cosine", "dot"])
@pytest.mark.parametrize("clusters", [0, 5])
def test_the_nearest_are_those_that_every_distance_says(metric: Metric, clusters: int) -> None:
    vectors, count = Vectors(seed=3, dim=7, clusters=clusters), BLOCK + 100
    everything = np.concatenate([vectors.stored_block(count, 0), vectors.stored_block(count, 1)])
    assert everything.shape == (count, 7)
    questions = vectors.query_vectors(3)
    answers = exact_answers(vectors, questions, count=count, top_k=10, metric=metric)
    for question, answer in zip(questions, answers, strict=True):
        far = [distance(question, vector, metric) for vector in everything]
        assert answer.tolist() == np.argsort(far)[:10].tolist()


def test_few_vectors_are_all_found() -> None:
    vectors = Vectors(seed=3, dim=4, clusters=2)
    answers = exact_answers(vectors, vectors.query_vectors(2), count=3, top_k=10, metric="l2")
    assert [sorted(answer) for answer in answers.tolist()] == [[0, 1, 2], [0, 1, 2]]
    assert exact_answers(vectors, vectors.query_vectors(0), count=3, top_k=10, metric="l2").shape == (0, 10)


def test_a_block_does_not_depend_on_how_many_there_are_and_seeds_differ() -> None:
    vectors = Vectors(seed=3, dim=4, clusters=2)
    np.testing.assert_array_equal(vectors.stored_block(10, 0), vectors.stored_block(5000, 0)[:10])
    assert not np.array_equal(vectors.stored_block(10, 0), Vectors(4, 4, 2).stored_block(10, 0))
    assert not np.array_equal(vectors.stored_block(10, 0), vectors.query_vectors(10))
    assert not np.array_equal(vectors.insert_batch(10, 0), vectors.insert_batch(10, 1))
