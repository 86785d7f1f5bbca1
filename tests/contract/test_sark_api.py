"""SARK's REST API, call by call: fields, statuses, words, columns and file names; good requests and bad ones."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from prony.compat.sark.nouns import CSV_COLUMNS
from prony.kinds.model.schema import ModelWorkload
from servers.sark import CPU, DUMONT, MODEL, Sark, complete, served_sark

JOB_KEYS = {"job_id", "campaign_id", "model_url", "compute_unit", "worker_id", "num_inference_runs", "submitted_at",
            "status", "retry_count"}  # fmt: skip


@pytest.fixture(scope="module")
def sark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sark]:
    with served_sark(tmp_path_factory.mktemp("sark")) as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(sark: Sark) -> None:
    assert sark.post("reset").status_code == 200


def error(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


class TestTheWhole:
    def test_the_root_of_the_api_tells_what_runs(self, sark: Sark) -> None:
        found = sark.http.get("/api").json()
        assert found["status"] == "Orchestrator running"
        assert found["version"] == "0.1.0"
        assert {"health", "workers", "campaigns", "jobs"} <= set(found["endpoints"])

    def test_health_tells_of_redis(self, sark: Sark) -> None:
        found = sark.get("health")
        assert found["status"] == "healthy"
        assert found["redis"].keys() == {"connected", "host", "port", "db", "timestamp"}
        assert found["redis"]["connected"] is True
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?", found["timestamp"])

    def test_two_slashes_are_one(self, sark: Sark) -> None:
        assert sark.http.get(f"{sark.http.base_url}/api//health").status_code == 200
        assert sark.http.get("/api/health/").status_code == 200

    def test_answers_are_compact_json_with_sorted_keys(self, sark: Sark) -> None:
        text = sark.http.get("/api/workers").text
        assert text.strip() == '{"count":0,"workers":[]}'

    def test_what_is_not_there_is_404_and_a_wrong_method_405_in_the_shape_of_errors(self, sark: Sark) -> None:
        assert error(sark.http.get("/api/nothing")) == (404, "Not found")
        assert error(sark.http.delete("/api/workers")) == (405, "Method not allowed")

    @pytest.mark.parametrize(
        "body",
        [
            b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"n": NaN}', b'{"n": 1e999}', b'{"t": "\\ud800"}',
            b'{"n": ' + b"9" * 5000 + b"}",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize("path", ["register", "campaigns"])
    def test_a_body_that_is_no_json_object_is_refused_and_not_a_fault(self, sark: Sark, path: str, body: bytes) -> None:
        assert error(sark.http.post(f"/api/{path}", content=body)) == (400, "Invalid JSON")

    def test_a_page_of_another_site_may_not_use_it(self, sark: Sark) -> None:
        answer = sark.http.post("/api/reset", headers={"Origin": "https://evil.example"})
        assert answer.status_code == 403
        strange = sark.http.get("/api/health", headers={"Host": "evil.example"})
        assert strange.status_code == 403
        assert not any("token" in one.text for one in (answer, strange)), "it takes none"

    def test_reset_clears_what_came_by_this_api_and_nothing_else(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        found = sark.post("reset").json()
        assert found.pop("message") == "All data cleared successfully"
        cleared = {f"{noun}_cleared": True for noun in ("workers", "jobs", "results", "campaigns")}
        assert found == {"status": "reset"} | cleared
        assert sark.get("workers")["count"] == sark.get("campaigns")["count"] == 0
        assert sark.http.get(f"/api/campaigns/{campaign_id}").status_code == 404
        assert sark.pop(worker_id) is None

    def test_a_worker_that_was_cleared_and_lives_is_back_with_its_next_heartbeat(self, sark: Sark) -> None:
        worker_id = sark.register()
        sark.post("reset")
        assert sark.post(f"workers/{worker_id}/heartbeat", {"timestamp": 1.5}).status_code == 200
        assert sark.get(f"workers/{worker_id}")["capabilities"] == [CPU]

    def test_monitoring_tells_limits_and_counts(self, sark: Sark) -> None:
        found = sark.get("monitoring/stats")
        assert found["health_monitor"].keys() == {"running", "thread_alive", "heartbeat_timeout", "check_interval"}
        told = {"total_jobs", "timed_out_jobs", "failed_jobs", "default_timeout"}
        assert found["timeout_handler"].keys() == told


class TestWorkers:
    def test_a_dumont_registers_and_gets_the_id_that_sark_gives(self, sark: Sark) -> None:
        answer = sark.post("register", DUMONT)
        assert answer.status_code == 200
        assert answer.json() == {"worker_id": "worker-77e07248829b", "status": "registered", "action": "created"}

    def test_the_id_comes_from_the_udid_where_there_is_one(self, sark: Sark) -> None:
        assert sark.register(device_info={"UDID": "abc"}) == "worker-900150983cd2"

    def test_json_is_read_whatever_the_content_type_says(self, sark: Sark) -> None:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        body = b'{"device_name":"a","ip_address":"b","capabilities":[],"device_info":{}}'
        assert sark.http.post("/api/register", content=body, headers=headers).status_code == 200

    def test_registering_again_updates_what_the_worker_is(self, sark: Sark) -> None:
        worker_id = sark.register(device_info={"UDID": "u"})
        body = DUMONT | {"capabilities": [CPU, "GPU (ONNX)"], "device_info": {"UDID": "u", "Ram": "64"}}
        again = sark.post("register", body | {"ip_address": "10.0.0.7"}).json()
        assert again == {"worker_id": worker_id, "status": "updated", "action": "updated"}
        found = sark.get(f"workers/{worker_id}")
        assert (found["capabilities"], found["ip_address"]) == ([CPU, "GPU (ONNX)"], "10.0.0.7")
        assert found["ram_gb"] == 64

    def test_a_worker_is_shown_with_every_field(self, sark: Sark) -> None:
        worker_id = sark.register()
        listed = sark.get("workers")
        assert listed["count"] == 1
        found = listed["workers"][0]
        alone = sark.get(f"workers/{worker_id}")
        assert found | {"last_seen": alone["last_seen"]} == alone  # it may have been seen in between
        assert found.keys() == {"worker_id", "device_name", "ip_address", "capabilities", "device_info", "soc",
                                "ram_gb", "os", "os_version", "udid", "registered_at", "status",
                                "last_seen"}  # fmt: skip
        assert (found["device_name"], found["status"], found["os"]) == ("vm", "active", "Linux")
        assert found["device_info"] == DUMONT["device_info"]
        assert abs(found["last_seen"] - found["registered_at"]) < 60

    @pytest.mark.parametrize("ram", ["nan", "inf", "1e999"])
    def test_memory_that_is_no_number_is_shown_as_it_was_told(self, sark: Sark, ram: str) -> None:
        sark.register(device_info=DUMONT["device_info"] | {"Ram": ram})
        assert [one["ram_gb"] for one in sark.get("workers")["workers"]] == [ram]

    @pytest.mark.parametrize("name", ["device_name", "ip_address", "capabilities", "device_info"])
    def test_a_field_that_is_missing_is_named(self, sark: Sark, name: str) -> None:
        body = {key: value for key, value in DUMONT.items() if key != name}
        assert error(sark.post("register", body)) == (400, f"Missing field: {name}")

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("device_name", 5),
            ("capabilities", "CPU"),
            ("capabilities", [1]),
            ("device_info", []),
            ("device_name", None),
        ],
    )
    def test_a_field_of_a_wrong_kind_is_named(self, sark: Sark, name: str, value: object) -> None:
        assert error(sark.post("register", DUMONT | {name: value})) == (400, f"Invalid field: {name}")

    @pytest.mark.parametrize("status", ["active", "busy", "cleanup", "faulty"])
    def test_a_worker_says_what_it_is(self, sark: Sark, status: str) -> None:
        worker_id = sark.register()
        answer = sark.put(f"workers/{worker_id}/status", {"status": status})
        assert (answer.status_code, answer.json()) == (200, {"worker_id": worker_id, "status": status})
        assert sark.get(f"workers/{worker_id}")["status"] == status

    @pytest.mark.parametrize("body", [{"status": "asleep"}, {}, {"status": None}])
    def test_a_status_that_there_is_not_is_refused(self, sark: Sark, body: dict[str, Any]) -> None:
        assert error(sark.put(f"workers/{sark.register()}/status", body)) == (400, "Invalid status")

    def test_of_an_unknown_worker_everything_is_404(self, sark: Sark) -> None:
        answers = [
            sark.http.get("/api/workers/nobody"),
            sark.http.get("/api/workers/nobody/health"),
            sark.put("workers/nobody/status", {"status": "busy"}),
            sark.put("workers/nobody/reset"),
            sark.post("workers/nobody/heartbeat", {"timestamp": 1.0}),
        ]
        assert [error(one) for one in answers] == [(404, "Worker not found")] * 5

    def test_a_heartbeat_needs_no_body(self, sark: Sark) -> None:
        worker_id = sark.register()
        found = sark.post(f"workers/{worker_id}/heartbeat").json()
        assert found.pop("timestamp") > 1e9
        assert found == {
            "worker_id": worker_id, "status": "active", "previous_status": "active", "action": "updated"
        }  # fmt: skip

    def test_a_faulty_worker_is_recovered_by_a_heartbeat(self, sark: Sark) -> None:
        worker_id = sark.register()
        sark.put(f"workers/{worker_id}/status", {"status": "faulty"})
        assert sark.get(f"workers/{worker_id}/health")["is_healthy"] is False
        found = sark.post(f"workers/{worker_id}/heartbeat").json()
        assert (found["previous_status"], found["action"]) == ("faulty", "recovered")
        assert sark.get(f"workers/{worker_id}")["status"] == "active"

    def test_a_faulty_worker_that_registers_again_is_recovered(self, sark: Sark) -> None:
        worker_id = sark.register()
        sark.put(f"workers/{worker_id}/status", {"status": "faulty"})
        assert sark.post("register", DUMONT).json()["action"] == "recovered"
        assert sark.get(f"workers/{worker_id}")["status"] == "active"

    def test_health_of_one_and_of_all(self, sark: Sark) -> None:
        one, other = sark.register("one"), sark.register("other")
        sark.put(f"workers/{other}/status", {"status": "faulty"})
        found = sark.get(f"workers/{one}/health")
        assert found["is_healthy"] is True
        assert found["seconds_since_heartbeat"] == found["time_since_heartbeat"]
        assert found["heartbeat_timeout"] == 60.0
        everyone = sark.get("health/workers")
        assert (everyone["total"], everyone["healthy"], everyone["unhealthy"]) == (2, 1, 1)
        assert {one, other} == {each["worker_id"] for each in everyone["workers"]}

    def test_only_a_faulty_worker_can_be_reset(self, sark: Sark) -> None:
        worker_id = sark.register()
        assert error(sark.put(f"workers/{worker_id}/reset")) == (400, "Worker is not in faulty state")
        sark.put(f"workers/{worker_id}/status", {"status": "faulty"})
        found = sark.put(f"workers/{worker_id}/reset").json()
        assert found == {"worker_id": worker_id, "status": "active", "message": "Worker reset successfully"}
        assert sark.get(f"workers/{worker_id}")["status"] == "active"


class TestCampaigns:
    def test_a_campaign_is_created_with_its_jobs(self, sark: Sark) -> None:
        jobs = [{"compute_unit": CPU, "num_inference_runs": 3}, {"compute_unit": "GPU (ONNX)"}]
        answer = sark.post("campaigns", {"model_url": MODEL, "jobs": jobs})
        assert answer.status_code == 200
        found = answer.json()
        campaign_id = found["campaign_id"]
        assert re.fullmatch(r"campaign-\d{10}", campaign_id)
        assert (found["total_jobs"], found["status"]) == (2, "running")
        assert found["jobs"] == [
            {"job_id": f"{campaign_id}-job-0", "compute_unit": CPU, "status": "pending"},
            {"job_id": f"{campaign_id}-job-1", "compute_unit": "GPU (ONNX)", "status": "pending"},
        ]

    def test_campaigns_of_one_second_have_different_ids(self, sark: Sark) -> None:
        with ThreadPoolExecutor(4) as threads:
            ids = list(threads.map(lambda _: sark.campaign(), range(8)))
        assert len(set(ids)) == 8
        assert sark.get("campaigns")["count"] == 8

    @pytest.mark.parametrize("body", [{}, {"model_url": MODEL}, {"jobs": [{}]}, {"model_url": MODEL, "jobs": []}])
    def test_a_campaign_without_model_or_jobs_is_refused(self, sark: Sark, body: dict[str, Any]) -> None:
        assert error(sark.post("campaigns", body)) == (400, "Missing model_url or jobs")

    def test_a_compute_unit_that_there_is_not_is_refused_with_those_that_there_are(self, sark: Sark) -> None:
        body = {"model_url": MODEL, "jobs": [{"compute_unit": CPU}, {"compute_unit": "TPU"}]}
        status, said = error(sark.post("campaigns", body))
        assert status == 400
        assert said.startswith('Invalid compute_unit in job 1: "TPU". Allowed values: CPU (ONNX), GPU (ONNX), ')
        assert sark.get("campaigns")["count"] == 0

    @pytest.mark.parametrize("unit", ["DirectML (ONNX)", "OpenVINO (ONNX)", "GPU (CoreML)", "Neural Engine (CoreML)"])
    def test_every_unit_that_a_worker_can_have_can_be_asked_for(self, sark: Sark, unit: str) -> None:
        job_id = f"{sark.campaign({'compute_unit': unit})}-job-0"
        assert sark.get(f"jobs/{job_id}")["job"]["compute_unit"] == unit

    @pytest.mark.parametrize("runs", [0, -1, "abc", 1.5, True, None, 10**9])
    def test_a_number_of_runs_that_no_worker_could_make_is_refused(self, sark: Sark, runs: object) -> None:
        body = {"model_url": MODEL, "jobs": [{"compute_unit": CPU, "num_inference_runs": runs}]}
        status, said = error(sark.post("campaigns", body))
        assert status == 400
        assert said.startswith("Invalid num_inference_runs in job 0")

    @pytest.mark.parametrize(
        "url",
        ["file:///etc/hostname", "/tmp/model.onnx", "model.onnx", "ftp://x/y", "http://", 5, "http://[", "s3://a/b"],
    )
    def test_a_model_that_a_worker_would_read_or_delete_on_its_disk_is_refused(self, sark: Sark, url: object) -> None:
        status, said = error(sark.post("campaigns", {"model_url": url, "jobs": [{}]}))
        assert status == 400
        assert said.startswith("Invalid model_url")

    @pytest.mark.parametrize("jobs", ["x", {"a": 1}, [1], [[]]])
    def test_jobs_that_are_no_list_of_objects_are_refused(self, sark: Sark, jobs: object) -> None:
        status, said = error(sark.post("campaigns", {"model_url": MODEL, "jobs": jobs}))
        assert (status, said) == (400, "Invalid jobs: a list of objects is expected")

    def test_what_the_dashboard_sends_besides_is_passed_over(self, sark: Sark) -> None:
        body = {"model_url": MODEL, "num_runs": 5, "device_id": 0, "jobs": [{"compute_unit": CPU, "device_id": 0}]}
        assert sark.post("campaigns", body).status_code == 200

    def test_a_campaign_is_shown_with_its_breakdown(self, sark: Sark) -> None:
        campaign_id = sark.campaign({"compute_unit": CPU}, {"compute_unit": "GPU (ONNX)"})
        found = sark.get(f"campaigns/{campaign_id}")
        assert found.keys() == {"campaign_id", "model_url", "total_jobs", "completed_jobs", "failed_jobs", "status",
                                "created_at", "jobs", "job_breakdown"}  # fmt: skip
        assert found["job_breakdown"] == {"pending": 2, "running": 0, "complete": 0, "failed": 0}
        assert found["jobs"][1]["reason"].startswith("no agent is enrolled")
        assert [job.keys() >= JOB_KEYS for job in found["jobs"]] == [True, True]
        assert sark.get("campaigns")["campaigns"] == [found]

    def test_an_unknown_campaign_or_job_is_404(self, sark: Sark) -> None:
        assert error(sark.http.get("/api/campaigns/campaign-1")) == (404, "Campaign not found")
        assert error(sark.http.get("/api/campaigns/campaign-1/results")) == (404, "Campaign not found")
        assert error(sark.http.get("/api/jobs/campaign-1-job-0")) == (404, "Job not found")

    def test_a_job_without_a_unit_is_for_the_processor(self, sark: Sark) -> None:
        campaign_id = sark.campaign({})
        worker_id = sark.register()
        assert sark.pop(worker_id) == f"{campaign_id}-job-0"

    def test_a_campaign_is_an_experiment_of_the_fleet_like_any_other(self, sark: Sark) -> None:
        campaign_id = sark.campaign({"compute_unit": CPU}, {"compute_unit": "GPU (ONNX)", "num_inference_runs": 5})
        experiment = sark.fleet.context.store.experiment(campaign_id)
        assert (experiment.name, experiment.submitted_by, experiment.job_count) == ("tiny", "sark", 2)
        jobs = sark.fleet.context.store.jobs(campaign_id)
        assert [(job.work(ModelWorkload).engine, job.work(ModelWorkload).unit, job.measure.runs) for job in jobs] == [
            ("onnxruntime", "cpu", 10), ("onnxruntime", "cuda", 5),
        ]  # fmt: skip


class TestResults:
    def test_a_job_goes_from_pending_to_running_to_complete(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = f"{campaign_id}-job-0"
        assert sark.get(f"jobs/{job_id}")["job"]["status"] == "pending"
        assert sark.begin(worker_id) == job_id
        running = sark.get(f"campaigns/{campaign_id}")
        assert running["job_breakdown"]["running"] == 1
        assert (running["jobs"][0]["worker_id"], running["jobs"][0]["device_name"]) == (worker_id, "vm")
        sark.report(job_id, worker_id)
        ended = sark.ended(campaign_id)
        assert ended["job_breakdown"] == {"pending": 0, "running": 0, "complete": 1, "failed": 0}
        assert (ended["completed_jobs"], ended["failed_jobs"]) == (1, 0)
        found = sark.get(f"jobs/{job_id}")
        assert found["job"]["status"] == "complete"
        assert found["job"]["completed_at"] >= found["job"]["started_at"]
        told = found["result"]
        assert told.pop("saved_at") > 1e9
        assert told.pop("CreatedUtc").endswith("+00:00")
        assert told == complete(job_id, worker_id)

    def test_a_failed_job_ends_its_campaign_with_the_workers_remark(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        figures = {key: None for key in complete("", "") if "Ms" in key or "Usage" in key or "Percent" in key}
        failed = {"status": "Failed", "remark": "unsupported operator", "FileName": "", "FileSize": 0}
        job_id = sark.serve_one(worker_id, **figures, **failed)
        ended = sark.ended(campaign_id)
        assert (ended["completed_jobs"], ended["failed_jobs"]) == (0, 1)
        found = sark.get(f"jobs/{job_id}")
        assert (found["job"]["status"], found["result"]["status"]) == ("failed", "Failed")
        assert found["job"]["reason"] == found["result"]["remark"] == "unsupported operator"
        row = _rows(sark.http.get(f"/api/campaigns/{campaign_id}/results"))[0]
        assert (row["Status"], row["JobId"], row["InferenceMsMedian"]) == ("Failed", job_id, "")

    def test_a_remark_with_half_a_surrogate_pair_is_kept_as_far_as_it_is_text(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.serve_one(worker_id, status="Failed", remark="unsupported \ud800 operator")
        assert sark.ended(campaign_id)["failed_jobs"] == 1
        assert sark.get(f"jobs/{job_id}")["job"]["reason"] == "unsupported ? operator"

    def test_a_report_with_a_number_without_end_can_be_shown(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.serve_one(worker_id, Own=float("nan"))
        assert sark.get(f"jobs/{job_id}")["job"]["job_id"] == job_id
        assert sark.get(f"campaigns/{campaign_id}")["total_jobs"] == 1

    def test_the_csv_has_the_25_columns_in_their_order_and_ends_lines_as_sark_does(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        job_id = sark.serve_one(worker_id)
        sark.ended(campaign_id)
        answer = sark.http.get(f"/api/campaigns/{campaign_id}/results")
        assert answer.headers["content-type"] == "text/csv; charset=utf-8"
        assert answer.headers["content-disposition"] == f"attachment; filename={campaign_id}_results.csv"
        lines = answer.text.split("\r\n")
        assert lines[0] == (
            "CreatedUtc,Status,UploadId,FileName,FileSize,DeviceName,DeviceYear,Soc,Ram,DiscreteGpu,VRam,DeviceOs,"
            "DeviceOsVersion,ComputeUnits,LoadMsMedian,LoadMsStdDev,LoadMsAverage,LoadMsFirst,PeakLoadRamUsage,"
            "InferenceMsMedian,InferenceMsStdDev,InferenceMsAverage,InferenceMsFirst,PeakInferenceRamUsage,JobId"
        )
        assert len(lines) == 3
        assert lines[2] == ""
        row = _rows(answer)[0]
        assert (row["Status"], row["UploadId"], row["JobId"]) == ("Complete", campaign_id, job_id)
        assert (row["FileSize"], row["Ram"], row["LoadMsStdDev"], row["PeakInferenceRamUsage"]) == (
            "2707", "23", "0.0", "70.25",
        )  # fmt: skip

    def test_results_can_be_had_before_the_campaign_ends(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign({"compute_unit": CPU}, {"compute_unit": CPU})
        path = f"/api/campaigns/{campaign_id}/results"
        assert error(sark.http.get(path)) == (404, "No results available yet")
        sark.serve_one(worker_id)
        answer = sark.until(lambda: (found := sark.http.get(path)).status_code == 200 and found)
        assert len(_rows(answer)) == 1
        assert sark.get(f"campaigns/{campaign_id}")["status"] == "running"

    def test_the_file_is_there_as_soon_as_the_campaign_is_completed(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        sark.serve_one(worker_id)
        name = sark.ended(campaign_id)["results_file"].removeprefix("outputs/")
        assert re.fullmatch(rf"{campaign_id}_\d{{8}}_\d{{6}}_results\.csv", name)
        listed = sark.get("results/files")
        assert listed["count"] == 1
        file = listed["files"][0]
        assert file.keys() == {"filename", "path", "size_bytes", "size_mb", "modified"}
        assert (file["filename"], file["path"]) == (name, f"outputs/{name}")
        answer = sark.http.get(f"/api/results/download/{name}")
        assert (answer.status_code, len(answer.content)) == (200, file["size_bytes"])
        assert answer.text == sark.http.get(f"/api/campaigns/{campaign_id}/results").text

    @pytest.mark.parametrize("name", ["..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a..b"])
    def test_a_name_that_climbs_is_refused(self, sark: Sark, name: str) -> None:
        assert error(sark.http.get(f"/api/results/download/{name}")) == (400, "Invalid filename")

    @pytest.mark.parametrize("name", ["nothing.csv", "campaign-1_20200101_000000_results.csv", "prony.db"])
    def test_a_file_that_is_not_there_is_404(self, sark: Sark, name: str) -> None:
        assert error(sark.http.get(f"/api/results/download/{name}")) == (404, "File not found")

    def test_all_results_are_one_file(self, sark: Sark) -> None:
        assert error(sark.http.get("/api/results/all")) == (404, "No results available")
        worker_id = sark.register()
        ids = [sark.campaign(), sark.campaign()]
        done = [sark.serve_one(worker_id) for _ in ids]
        for campaign_id in ids:
            sark.ended(campaign_id)
        answer = sark.http.get("/api/results/all")
        name = answer.headers["content-disposition"].removeprefix("attachment; filename=")
        assert re.fullmatch(r"all_results_\d{8}_\d{6}\.csv", name)
        assert [row["JobId"] for row in _rows(answer)] == done

    def test_a_cell_that_a_spreadsheet_would_run_is_text(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        sark.serve_one(worker_id, DeviceName="=cmd|' /C calc'!A0", Soc="@SUM(1)")
        sark.ended(campaign_id)
        row = _rows(sark.http.get(f"/api/campaigns/{campaign_id}/results"))[0]
        assert (row["DeviceName"], row["Soc"]) == ("'=cmd|' /C calc'!A0", "'@SUM(1)")

    def test_what_a_dumont_measured_is_a_result_that_is_suspect_and_says_why(self, sark: Sark) -> None:
        worker_id = sark.register()
        campaign_id = sark.campaign()
        sark.serve_one(worker_id)
        sark.ended(campaign_id)
        record = sark.fleet.context.store.records(campaign_id)[0]
        assert record.summary.verdict.grade == "suspect"
        codes = {reason.code for reason in record.summary.verdict.reasons}
        assert codes == {"reported", "warmup_not_separated", "unit_not_verified", "machine_not_watched"}
        headline = record.summary.estimates["inference_ms.p50"]
        assert (headline.value, headline.low, headline.count, headline.method) == (
            1.25,
            None,
            10,
            "as reported by a SARK worker",
        )
        assert record.summary.estimates["rss_peak_mib.p50"].value == 70.25

    def test_the_lengths_of_queues_are_told(self, sark: Sark) -> None:
        worker_id = sark.register(capabilities=[CPU, "GPU (ONNX)"])
        sark.campaign({"compute_unit": CPU}, {"compute_unit": CPU}, {"worker_id": worker_id})
        found = sark.get("queue/status")
        assert found["worker_queues"] == {worker_id: {"device_name": "vm", "queue_size": 1}}
        assert found["capability_queues"] == {CPU: 2, "GPU (ONNX)": 0}
        assert found["results_queue_size"] == 0


def _rows(answer: Any) -> list[dict[str, str]]:
    reader = csv.DictReader(io.StringIO(answer.text, newline=""))
    assert tuple(reader.fieldnames or ()) == CSV_COLUMNS
    return list(reader)
