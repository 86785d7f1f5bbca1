"""Fake runner that returns a recorded result for any job, so that hundreds of jobs take seconds.

Called like `prony exec`. The recording is the folder of a real run; only the ids in it are made those of the job.
"""

import json
import os
import shutil
import sys
import time
from pathlib import Path


def main(recording: str, job_file: str, out: str, seconds: str) -> None:
    job = json.loads(Path(job_file).read_text())
    say("started", job, total=1)
    time.sleep(float(seconds))
    folder = Path(out)
    shutil.copytree(recording, folder, dirs_exist_ok=True)
    shutil.copyfile(job_file, folder / "job.json")
    result = json.loads((folder / "result.json").read_text())
    result |= {"job_id": job["id"], "experiment_id": job["experiment_id"]}
    (folder / "result.json").write_text(json.dumps(result))
    say("finished", job, done=1, total=1, state="complete")


def say(kind: str, job: dict[str, str], **rest: object) -> None:
    os.write(1, json.dumps({"kind": kind, "job_id": job["id"], **rest}).encode() + b"\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
