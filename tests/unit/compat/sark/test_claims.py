"""Who has which job, worked out from what a Dumont lets be seen."""

from __future__ import annotations

from prony.compat.sark.face.intake import Claims


def test_the_job_that_was_asked_for_last_from_the_same_address_is_the_likeliest() -> None:
    claims = Claims()
    claims.note_request("older", "10.0.0.1", 1.0)
    claims.note_request("elsewhere", "10.0.0.2", 3.0)
    claims.note_request("newer", "10.0.0.1", 2.0)
    assert claims.candidates({"older", "elsewhere", "newer"}, "10.0.0.1") == ["newer", "older", "elsewhere"]


def test_a_job_that_does_not_fit_is_no_candidate() -> None:
    claims = Claims()
    claims.note_request("a", "x", 1.0)
    claims.note_request("b", "x", 2.0)
    assert claims.candidates({"a"}, "x") == ["a"]


def test_a_question_that_was_answered_or_is_old_is_forgotten() -> None:
    claims = Claims()
    for at, job_id in enumerate(("a", "b", "c")):
        claims.note_request(job_id, "x", float(at))
    claims.forget("c")
    claims.expire(1.0)
    assert claims.latest(10) == ["b"]


def test_only_the_latest_questions_are_looked_at() -> None:
    claims = Claims()
    for at in range(5):
        claims.note_request(f"job-{at}", "x", float(at))
    assert claims.latest(2) == ["job-4", "job-3"]


def test_a_name_that_two_processes_share_is_free_when_both_are() -> None:
    claims = Claims()
    claims.begin("worker")
    claims.begin("worker")
    assert claims.end("worker") is False
    assert claims.end("worker") is True
    assert claims.end("worker") is True


def test_a_new_life_has_begun_nothing() -> None:
    claims = Claims()
    claims.begin("worker")
    claims.begin("worker")
    claims.reborn("worker")
    claims.begin("worker")
    assert claims.end("worker") is True
