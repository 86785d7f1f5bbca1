"""How long a server waits for Dumont workers, and as whom it acts for them."""

from __future__ import annotations

from dataclasses import dataclass

from prony.model.access import Principal, Role

# Nobody says who they are there, so all of it is done in one name.
WHO = Principal(name="sark", role=Role.ADMIN)


@dataclass(frozen=True)
class FaceSettings:
    """`claim_s`: how long a job may be in no queue without a worker that says to be busy with it. `job_s`: how long a
    worker may take for a job, and how long one waits that no living worker could run. `report_s`: how long after a
    worker is free again its report may come. `silence_s`: after so long without a sign of life it is called faulty."""

    claim_s: float = 15.0
    job_s: float = 3600.0
    report_s: float = 5.0
    silence_s: float = 60.0
    poll_s: float = 0.2
    look_s: float = 2.0
