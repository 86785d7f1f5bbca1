"""Serve llama.cpp by the command line of `llama-server`: the package `xllamacpp` brings the library, but no program.

It is run as a file by the interpreter that has the package, so it imports nothing of Prony.
"""

import argparse
import signal
import sys


def main() -> int:
    import xllamacpp

    asked = argparse.ArgumentParser()
    for name, kind in (("model", str), ("host", str), ("alias", str), ("slot-save-path", str)):
        asked.add_argument(f"--{name}", type=kind)
    for name in ("port", "ctx-size", "threads", "parallel", "n-gpu-layers"):
        asked.add_argument(f"--{name}", type=int)
    asked.add_argument("--metrics", action="store_true")
    given = asked.parse_args()
    wanted = xllamacpp.CommonParams()
    wanted.model.path = given.model
    wanted.hostnames = [given.host]
    wanted.port = given.port
    wanted.endpoint_metrics = given.metrics
    wanted.endpoint_props = True
    if given.ctx_size is not None:
        wanted.n_ctx = given.ctx_size
    if given.parallel is not None:
        wanted.n_parallel = given.parallel
    if given.threads is not None:
        wanted.cpuparams.n_threads = given.threads
    if given.alias is not None:
        wanted.model_alias = {given.alias}
    if given.slot_save_path is not None:
        wanted.slot_save_path = given.slot_save_path
    server = xllamacpp.Server(wanted)
    signal.pause()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
