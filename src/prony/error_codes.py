"""What each error code means, and what to do about it; this is the hint of an error that brings none of its own.

The engine's child imports this module: it must need nothing but the standard library.
"""

from __future__ import annotations

from typing import NamedTuple


class ErrorCode(NamedTuple):
    """`advice` says what a person can do."""

    meaning: str
    advice: str


# A hint with this command; where one job is shown, its id takes the place of ID: `name_job`.
_LOG_COMMAND = "`prony logs ID`"
SEE_LOG = f"{_LOG_COMMAND} prints the log"


def name_job(hint: str, job_id: str) -> str:
    """Return a hint with a job's id in the command that prints its log."""
    return hint.replace(_LOG_COMMAND, _LOG_COMMAND.replace("ID", job_id))


# Of the kinds of error themselves: errors that need no narrower code.
_KINDS = {
    "input": ("the recipe, an option or a file is wrong", "correct what the message names"),
    "recipe": ("the recipe is wrong; each problem has its line", "correct each problem; `prony check` finds them all"),
    "not_found": ("what you named does not exist", "check the name; the hint names the command that lists all"),
    "conflict": ("this cannot be done in the present state", "the hint says what is possible"),
    "forbidden": ("you may not do this", "use a token whose role allows it"),
    "capacity": ("something is missing or busy: an engine, a unit, a package", "add it, or wait"),
    "sut": ("what is measured failed: an engine, a service or a script", SEE_LOG),
    "measurement": ("the number cannot be trusted", "measure again"),
    "store": ("stored data cannot be read or written", "check the disk and the database"),
    "transport": (
        "the other program cannot be reached, or its answer cannot be read",
        "check the network, and that the other program runs",
    ),
    "error": ("anything else", "read the message"),
}
_COMMANDS = {
    "unknown_command": ("no command has this name", "`prony --help` lists the commands"),
    "settings": ("unknown key or wrong value in the settings", "correct it; `prony settings` lists them all"),
    "unknown_format": ("unknown report or export format", "use one of the formats that the message lists"),
    "ambiguous": ("several ids begin with this text", "type more of the id"),
    "bad_job": ("the file for `prony exec` is not a job", "give it a `job.json`"),
    "unknown_kind": ("this kind of workload is not installed here", "install the plug-in that has it"),
    "unknown_engine": ("no engine has this name", "`prony engines` lists them"),
    "unknown_topic": ("`prony docs` has no page of this name", "`prony docs --list` lists the pages"),
    "no_prometheus": ("Prometheus is not installed", "install it"),
    "prometheus_failed": ("Prometheus did not start", "read its output in the file that the message names"),
    "no_documentation": ("the documentation is not in this installation", "run `make docs`"),
    "unknown_model": (
        "the model does not exist, or its address has an unknown scheme",
        "check its name or path; `prony zoo` lists models that need no download",
    ),
    "unknown_probe": ("no probe has this name", "the hint lists the known ones"),
    "no_service_manager": (
        "neither systemd nor launchd runs here",
        "`prony service install --print` shows the file to install",
    ),
    "no_browser": ("no browser was found that can print a PDF", "install Chromium, or set PRONY_BROWSER"),
    "browser_failed": ("the browser wrote no complete PDF", "try again, or use another format"),
    "no_device": ("this machine does not match `place.where`", "run it on one that does, or change `place.where`"),
    "not_comparable": (
        "the machine, the model or the settings differ",
        "use --across NAME to allow a difference, or --anyway",
    ),
    "unknown_metric": ("unknown metric, or these results do not have it", "use one that the hint lists"),
    "unknown_path": ("no job has this setting", "`prony show ID` lists the settings of its jobs"),
    "unknown_axis": ("no job has this row or column", "use one that the hint lists"),
    "gate": (
        "the gate is wrong: its form, or a metric that this workload does not have",
        "write it like `inference_ms.p99 <= 20`; `prony docs metrics` lists the metrics",
    ),
    "no_gates": ("neither the recipe nor the command has gates", "add `gates` to the recipe, or use --gate"),
    "no_sweep": ("the jobs do not differ in their load", "vary the load in the matrix"),
    "slo": ("`--slo` needs a metric and a number", "write it like `ttft_ms.p99=200`"),
    "bad_trace": ("a line of the trace is wrong", "correct the line that the message names"),
    "no_terminal": ("`prony menu` needs a terminal", "use the commands instead"),
    "no_answers": ("the experiment has no stored answers to score", "run it with a task that stores answers"),
    "no_requests": ("the imported benchmark has neither requests nor a summary", "export it again, with its requests"),
}
_MODELS = {
    "checksum_mismatch": (
        "the received file has a wrong checksum",
        "fetch it again; if the file was changed on purpose, write the new checksum",
    ),
    "format_unavailable": (
        "the engine does not load models of this format",
        "choose another engine or file; `prony docs choose-engine` lists formats",
    ),
    "damaged_model": ("the model file is empty, cut short or of an unknown architecture", "fetch or export it again"),
    "model_invalid": ("the file is no model of the engine's format", "check that it is complete, or export it again"),
    "missing_weights": ("a file with weights is missing beside the model", "copy it next to the model"),
    "unsafe_path": ("the model refers to a file outside its folder", "save it again with its data next to it"),
    "unknown_size": (
        "an axis has no size, and Prony cannot guess it",
        "set it in `workload.inputs`; the hint shows how",
    ),
    "wrong_size": ("the size that `prony bench` guessed does not work", "use the one in the hint"),
    "fixed_batch": ("the model has another, fixed batch size", "use that one, or export it with a dynamic first axis"),
    "unsupported_type": ("Prony cannot make inputs of this type", "export the model with plain tensors as inputs"),
    "missing_package": ("a Python package is missing", "run the command in the hint"),
    "conversion_failed": (
        "a model of the zoo could not be converted",
        "run the command in the hint to see the whole error",
    ),
    "context_exceeded": (
        "depth, prompt and generated tokens exceed the model's context",
        "lower one of them, or use a model with a longer context",
    ),
    "no_tokenizer": (
        "the language model has no tokenizer",
        "put the tokenizer's file next to the model; convert a GGUF file again",
    ),
    "bad_template": ("the model's chat template fails", "correct it, or remove `prompts.system`"),
    "no_reference": (
        "the model and the reference have different vocabularies",
        "compare models with the same vocabulary",
    ),
}
_FILES = {
    "insecure_url": (
        "the URL is plain http or ftp, where the file could be changed on the way",
        "use https; for ftp and script sources, set `checksum`",
    ),
    "too_big": ("the file is larger than the limit", "download it yourself and use its path"),
    "model_refused": (
        "the agent's owner does not allow this model source",
        "ask the owner: `prony agent start --help` has the options",
    ),
    "path_refused": (
        "the path is outside the folders that the agent's owner allows",
        "ask the owner for `prony agent start --model-folders FOLDER`",
    ),
    "no_access": ("the server wants a login (401, 403)", "for `hf:` set HF_TOKEN; else download it yourself"),
    "unknown_length": (
        "the server sends neither a length nor a checksum of the file",
        "write the checksum in the recipe",
    ),
    "redirects": ("too many redirects", "use the final URL"),
    "bad_status": ("the server answered with an error", "check the URL or the endpoint"),
    "no_tls": (
        "the server has no TLS, or its certificate is not trusted",
        "turn on TLS there, or name its CA: `?ca=FILE`",
    ),
    "no_http2": ("the server does not support HTTP/2", "remove `workload.options.http`"),
    "broken_transfer": (
        "the connection broke too often",
        "check the network; the next run continues where this one stopped",
    ),
    "damaged_samples": ("a stored sample file was changed", "restore it from a backup"),
}
_ACCESS = {
    "unauthorized": (
        "no token, or it is unknown, revoked, expired or used",
        "send a valid one; `prony tokens add` makes one",
    ),
    "too_many": ("too many wrong tokens came from this address", "wait as long as the hint says"),
}
_ENGINES = {
    "engine_missing": (
        "the engine that the job or the model needs is not installed",
        "`prony engines add NAME`",
    ),
    "engine_unsupported": ("the engine does not work on this system", "`prony engines` lists those that do"),
    "engine_broken": (
        "the engine's import fails, hangs or crashes, or its interpreter is gone",
        "`prony engines add NAME` installs it anew",
    ),
    "engine_version": (
        "another version than `engine_version` is installed",
        "`prony engines add NAME --version VERSION`",
    ),
    "draft_mismatch": (
        "the draft model has another vocabulary than the model",
        "use a smaller model of the same family",
    ),
    "draft_unavailable": (
        "the engine or the model's cache does not support speculative decoding",
        "use another engine, or remove `workload.draft`",
    ),
    "kv_type_unavailable": (
        "the engine does not have this type of key-value cache",
        "use another type, or remove `kv_type`",
    ),
    "no_common_agent": (
        "no agent can run both sides of the duet",
        "both sides must fit one device: see `prony agents`",
    ),
    "install_failed": ("`prony engines add` could not make the environment", "see what pip printed"),
    "unit_unavailable": (
        "the compute unit is missing; Prony uses no other instead",
        "choose one of the units in the hint",
    ),
    "precision_unavailable": (
        "the engine cannot compute this model in this precision",
        "remove `precision`, or convert the model",
    ),
    "load_failed": (
        "the engine cannot load the model",
        "export the model again, or try another engine",
    ),
    "hardware_test_failed": ("a process of a hardware test ended", "check that enough memory is free"),
    "wrong_output": ("hardware test: the GPU returned wrong data", "check the GPU and its memory"),
    "no_llm_engine": ("the engine does not run language models", "choose one that does, such as `llamacpp`"),
    "token_count": (
        "the language model wrote another number of tokens than requested",
        "ask for fewer tokens, or use another engine",
    ),
    "cache_not_empty": (
        "the engine kept tokens of an earlier prompt, so prompt times would be too short",
        "use another version of the engine",
    ),
    "not_finite": ("the language model predicts NaN or infinity", "try another precision or another file"),
    "page_cache": ("the model file cannot be dropped from the page cache", "use `measure.page_cache: as-is`"),
    "engine_limit": ("the engine does not support this combination", "change what the hint names"),
}
_SERVICES = {
    "service_missing": (
        "the service's program or container engine is missing",
        "install it, or set its image or program",
    ),
    "no_program": ("the service's program was not found", "correct `settings.program`, or install it"),
    "all_failed": ("no request of the load succeeded", "see the errors in the report; check the endpoint"),
    "service_failed": ("the service ended, did not start, or found no free port", SEE_LOG),
    "service_timeout": ("the service was not ready in time", SEE_LOG),
    "no_folder": ("the service needs a temporary folder that other users can open", "set TMPDIR to one"),
    "no_user": ("the service cannot run as root, and there is no user `nobody`", "run Prony as an ordinary user"),
    "client_failed": ("the load command failed", SEE_LOG),
    "client_timeout": ("the load command did not end in time", "raise `load.duration`"),
    "scorer_failed": (
        "your scorer failed, timed out or printed no scores; timings are kept",
        "correct it, then `prony score ID`",
    ),
}
_ENDINGS = {
    "engine_error": ("the engine raised an error", SEE_LOG),
    "crash": (
        "the engine crashed: SIGSEGV, SIGBUS, SIGABRT, SIGFPE or another signal",
        f"{SEE_LOG}; try another version of the engine",
    ),
    "illegal_instruction": ("the engine was built for another CPU (SIGILL)", "install a build for this CPU"),
    "out_of_memory": (
        "memory ran out, or the system killed the process for it",
        "use a smaller model, batch or context, or a larger machine",
    ),
    "memory_limit": ("a process used more memory than `limits.memory`", "raise the limit"),
    "timeout": ("a repetition took longer than `limits.timeout`", "raise the limit, or measure less"),
    "log_limit": ("a process wrote more than 256 MiB of output", "print less, or print to a file"),
    "cpu_limit": ("the system's limit on CPU time ended the process (SIGXCPU)", "raise it: `ulimit -t`"),
    "killed": (
        "something outside Prony ended the process (SIGKILL or SIGTERM)",
        "find out what sent it: a person or a supervisor",
    ),
    "engine_exit": ("the engine ended its process", SEE_LOG),
    "engine_starter_lost": (
        "the process that starts the engine's processes ended",
        f"{SEE_LOG}; memory may have run out",
    ),
    "unreadable_message": ("the engine's process sent unreadable data", SEE_LOG),
    "cancelled": ("a person stopped it", "`prony retry ID` runs it again"),
}
_SCRIPTS = {
    "no_script_program": ("the script's program is missing or cannot start", "install it, or write its full path"),
    "no_directory": ("`workload.directory` or `workload.path` is no folder", "correct it"),
    "large_directory": (
        "`workload.directory` is too large to copy for every run",
        "keep only the scripts; put data into `workload.sources`",
    ),
    "bad_archive": (
        "a tar of scripts is damaged, or has entries outside its folder",
        "pack it again with relative paths",
    ),
    "link_outside": ("a link leads out of the script's folder", "copy its target into the folder"),
    "scripts_quota": ("`PRONY_SCRIPTS_QUOTA` is used up", "delete experiments, or raise it"),
    "no_scripts": (
        "the script folder with this checksum is not here",
        "submit the recipe again with `prony run --server URL`",
    ),
    "no_container": ("no container engine works here", "install podman or docker, or use --no-container"),
    "not_installed": ("Prony runs from a copy of its sources, so it finds no plug-ins", "install it with pip"),
    "no_image": (
        "an image cannot be pulled, or a mirror's folder lacks it",
        "pull it by hand to see why, or set `containers.mirrors`",
    ),
    "server_port_taken": ("another program uses a port of the script's server", "end it, or choose other ports"),
    "no_torchrun": ("the script's interpreter has no torch", "install torch, or use `launch.kind: process`"),
    "no_mpirun": ("mpirun is missing, or too new for several nodes", "install Open MPI 4 on every node"),
    "no_launcher": ("the launcher does not answer", "run the command in the hint on that machine"),
    "script_exit": ("the script or a rank ended with a nonzero exit code", SEE_LOG),
    "script_signal": ("a signal ended the script or a rank", SEE_LOG),
    "supervisor_lost": ("the process that supervises a script was killed", "find out what killed it, and run it again"),
}
_STORAGE = {
    "store_busy": ("another Prony has locked the home or the result", "wait until it has finished"),
    "newer_store": ("a newer Prony made the database", "upgrade Prony, or use another home"),
    "runner_lost": (
        "the process that measures ended unexpectedly",
        "memory may have run out; `prony doctor` checks the machine",
    ),
    "disk_full": ("the disk is full", "free some space"),
    "damaged": ("the received result is incomplete, unsafe or of another job", "send it again"),
}
_SERVER = {
    "malformed": (
        "the request is not HTTP, not JSON, or not readable",
        "correct the request: `/docs` of the server shows each operation",
    ),
    "invalid": ("a field of the request is wrong", "correct it: `/docs` of the server shows each operation"),
    "method_not_allowed": ("the address does not have this method", "use one that `Allow` lists"),
    "server_stopping": ("the server is stopping", "try again after the seconds in `Retry-After`"),
    "internal": ("a bug in Prony", "search the server's log for `X-Request-Id`, and report it"),
    "too_large": ("the headers, the body or the result are over their limit", "send less, or in smaller parts"),
    "too_slow": ("the headers of the request came too late", "send the whole request at once"),
    "busy": ("too many connections or waiting recipes", "try again in a moment"),
    "length_required": ("the upload has no length", "send Content-Length, or Transfer-Encoding: chunked"),
    "unsupported_media_type": ("the content type must be JSON", "send Content-Type: application/json"),
    "foreign_host": (
        "`--no-auth`: the request must name loopback as its host",
        "use `http://localhost`, or send a token",
    ),
    "foreign_origin": ("a page of another origin sent the request", "use the server's own pages, or send a token"),
    "no_auth_beyond_loopback": ("`--no-auth` works on loopback only", "leave it out, or use --host 127.0.0.1"),
    "lists_full": ("the built-in lists for workers are full (64 MiB)", "start workers, or use --redis URL"),
    "redis_unreachable": (
        "the workers' Redis does not answer; the server tries again",
        "start it, or check its address",
    ),
    "address_unavailable": ("the port is taken or not allowed", "stop the program that has it, or use --port 0"),
    "server_running": ("another server uses this home", "stop it, or set PRONY_HOME to another folder"),
}
_EXPERIMENTS = {
    "too_many_jobs": ("too many jobs at once, or too many different ones", "submit the recipe in parts"),
    "recipe_too_costly": (
        "reading the recipe took too much time or memory",
        "make it smaller: fewer values, fewer excludes",
    ),
    "key_reused": ("the Idempotency-Key belongs to another submission", "use a new key for each submission"),
    "no_jobs_named": ("the batch names no job", "give ids, an experiment or a state"),
    "no_result": (
        "no job has this id, or it has no such result yet",
        "`prony show ID` lists the jobs; `prony watch ID` waits for results",
    ),
    "bad_cursor": ("the cursor is not the `next` of a page", "use the `next` of an earlier page"),
    "bad_offset": ("the log is not that long", "begin at 0"),
    "no_file": ("the result has no file of this name", "`prony files JOB` lists them"),
    "not_text": ("the file is not text", "download it"),
    "needs_agents": (
        "the job needs several agents, and there is no server",
        "submit it to a server with `prony run --server URL`",
    ),
    "loopback": (
        "agents on different machines cannot share a loopback address",
        "use an address that all of them can reach",
    ),
    "agents_missing": ("the job's other agents did not arrive in time", "check that all of them use the same server"),
    "agent_lost": (
        "one of the job's agents was lost; the whole job is tried again",
        "`prony agents` shows its state; check its machine and network",
    ),
    "aws_profile": (
        "an AWS profile, or the file that should have it, cannot be read",
        "check AWS_PROFILE and `~/.aws`",
    ),
    "aws_role": ("the role of this container or instance gives no keys", "check the role"),
    "clients_apart": (
        "`load.clients.on` names a target outside the service's cluster",
        "use one Slurm target for both",
    ),
    "no_server_clock": ("the server's clock could not be read", "check that the server answers"),
    "worker_failed": (
        "a worker of another program reported `Failed`; the message is what it wrote",
        "read the log of that worker",
    ),
    "empty_report": (
        "a worker of another program reported no inference time; the job is tried again",
        "read the log of that worker",
    ),
    "no_worker": ("no worker of another program took the job in time", "start a worker, then `prony retry ID`"),
    "lease_lost": ("the job's agents were lost in every attempt", "check the agents, then `prony retry ID`"),
    "no_series": ("no history has this name", "`prony history` lists them"),
    "no_change": ("no change has this id", "`prony watch-regressions` lists them"),
    "no_baseline": ("the series has no baseline", "`prony baseline set` pins a result"),
    "no_alarm": ("no alarm has this name", "`prony alarm list` lists them"),
    "bad_address": ("the alarm's address is not valid", "correct it; the hint shows the forms"),
    "no_schedule": ("no schedule has this name", "`prony schedule list` lists them"),
    "no_schedule_time": ("the schedule has no time", "use --cron, or add `schedule` to the recipe"),
}
_TARGETS = {
    "unknown_target": ("no target has this name; on a server only `local` exists", "`prony targets list` lists yours"),
    "bad_target": ("unknown option or wrong value in `targets.toml`", "correct it"),
    "unknown_executor": ("no executor for this kind of target is installed", "check the target's `kind`"),
    "no_input": (
        "a file with a relative path cannot be sent",
        "correct the path, or use an absolute path on the target",
    ),
    "host_key": (
        "unknown or changed ssh host key",
        "ask the host's owner for the fingerprint, compare it, then log in once with ssh",
    ),
    "ssh_login": ("the ssh login was refused", "log in once by hand, then try again"),
    "no_python": ("the target has no Python 3.11 or newer", "set the target's option `python` or `setup`"),
    "prony_not_installed": ("Prony is not installed on the target", "`prony targets install NAME`"),
    "no_packages": ("packages for the target cannot be downloaded here", "check the network and pip's index"),
    "stopped_at_target": (
        "the target stopped the job; measured data is kept",
        "if its time ran out, raise the target's `minutes` or measure less; else run it again",
    ),
    "lost_at_target": ("the target lost the job; it is tried again", "`prony targets check NAME`"),
    "target_not_described": ("no machine of the target reported its hardware", "`prony targets check NAME`"),
    "suspended": ("the scheduler suspended the job, so its numbers are void", "run it where jobs are not suspended"),
    "kubernetes_option": ("wrong context, kubeconfig or namespace", "correct the target's options"),
    "kubernetes_forbidden": (
        "the cluster refuses a request of this user",
        "run the command in the hint, or ask its admin",
    ),
    "kubernetes_full": ("a quota of the namespace is used up", "wait, or ask for a larger quota"),
    "kubernetes_refused": ("the cluster refuses an object", "correct what the message names"),
    "no_kubectl": ("no `kubectl` here", "install it"),
    "payload_too_large": (
        "the recipe's files are too large to send with a Job",
        "put large files into the image or on a volume",
    ),
    "image_needed": (
        "Prony cannot be installed on Kubernetes: the image must have it",
        "build an image with Prony, and set the target's option `image`",
    ),
    "slurm_option": (
        "Slurm refuses an option of the target, such as the partition",
        "`prony targets check NAME` shows what there is",
    ),
    "slurm_full": ("Slurm has no fitting node or no room", "wait, or ask for less"),
    "slurm_refused": ("Slurm refuses the submission", "correct what the message names"),
}
_AGENTS = {
    "no_agent": ("no agent has this id, or it was removed", "`prony agents` lists them"),
    "agent_replaced": (
        "another process has enrolled as this agent",
        "stop one of the two; if the home was copied, remove `agents` in the copy and enrol it again",
    ),
    "no_lease": (
        "the agent no longer has this job: it was given to another agent, or deleted",
        "agents ask for another job by themselves",
    ),
    "wrong_offset": (
        "a part of an upload starts at a wrong offset",
        "get the uploaded size from the server and continue from there",
    ),
    "no_body": ("the request has no result in its body", "send the result's tar as the body"),
    "unpacker_lost": (
        "the process that unpacks uploads ended twice; agents send their results again",
        "memory may have run out: see the server's log",
    ),
    "port_taken": ("the agent's metrics port is taken", "choose another --metrics-port"),
    "kind_refused": (
        "the agent's owner does not allow this kind of workload, or no command in it",
        "ask the owner for `prony agent start --kinds`",
    ),
}
# Codes of before 2026-11-19 in stored results and in those of older agents.
RENAMED_CODES = {
    "gang_lost": "agents_missing",
    "garbled": "unreadable_message",
    "lost_there": "lost_at_target",
    "member_lost": "agent_lost",
    "no_clock": "no_server_clock",
    "no_prony_there": "prony_not_installed",
    "not_described": "target_not_described",
    "spawner_lost": "engine_starter_lost",
    "stopped_there": "stopped_at_target",
    "warden_lost": "supervisor_lost",
}
_PARTS = (
    _KINDS, _COMMANDS, _MODELS, _FILES, _ACCESS, _ENGINES, _SERVICES, _ENDINGS, _SCRIPTS, _STORAGE, _SERVER,
    _EXPERIMENTS, _TARGETS, _AGENTS,
)  # fmt: skip
ERROR_CODES = {code: ErrorCode(*texts) for part in _PARTS for code, texts in part.items()}
