"""Options of `prony bench` and `prony recipe`: a model or a command, and how much of it."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from prony.cli.arguments import add_set

if TYPE_CHECKING:
    from prony.app.command_recipe import CommandRequest
    from prony.app.model_recipe import ModelRequest

_PRECISIONS = ("default", "fp32", "fp16", "bf16", "int8")
# Options that only a model has, and only a command has.
_OF_MODELS = ("engine", "engines", "unit", "batch", "threads", "precision", "shape", "time")
_OF_COMMANDS = ("parameter_list", "warmup")


def add_bench_options(parser: ArgumentParser) -> None:
    """Add what is benchmarked and how."""
    parser.add_argument(
        "models", metavar="MODEL", nargs="*",
        help="a file, zoo:NAME, https://, hf:ORG/NAME/FILE, s3:// or ftp://; two run alternately and are compared",
    )  # fmt: skip
    parser.add_argument(
        "--command",
        action="append",
        metavar="TEXT",
        help="a command instead of a model, run without a shell; repeatable",
    )
    engines = parser.add_mutually_exclusive_group()
    engines.add_argument(
        "--engine", metavar="NAME", help="the engine (default: an installed engine that supports the model)"
    )
    engines.add_argument(
        "--engines", metavar="NAMES", help="several engines, separated by commas, or all: compared side by side"
    )
    parser.add_argument(
        "--unit", metavar="NAME[,NAME...]", help="the compute unit (cpu); several run one after another"
    )
    parser.add_argument(
        "--batch", type=_counts, metavar="N[,N...]", help="items in one inference (1); several make a job each"
    )
    parser.add_argument(
        "--threads", type=_counts, metavar="N[,N...]", help="threads of the engine (every CPU); several make a job each"
    )
    parser.add_argument("--precision", choices=_PRECISIONS, help="precision to compute in (the engine's choice)")
    parser.add_argument(
        "--shape", action="append", type=_shape, metavar="INPUT=1x3x224x224",
        help="whole shape of an input, or INPUT=scalar; repeatable",
    )  # fmt: skip
    parser.add_argument("--runs", type=_count, metavar="N", help="inferences in a process (100), or executions (10)")
    parser.add_argument("--time", metavar="TIME", help="models only: time to measure each, over all processes (30s)")
    parser.add_argument(
        "--repeats", type=_count, metavar="N", help="models only: fresh processes (5; for two models 10)"
    )
    parser.add_argument(
        "--warmup", type=_count, metavar="N", help="commands only: executions before the measured ones (0)"
    )
    parser.add_argument(
        "-L", "--parameter-list", action="append", nargs=2, metavar=("NAME", "V1,V2"),
        help="commands only: values for {NAME}; every combination runs; repeatable",
    )  # fmt: skip
    add_set(parser)


def request_of(options: Namespace) -> ModelRequest | CommandRequest:
    """Return what the options ask for.

    Raises:
        InputError: There is neither a model nor a command, or options of both.
    """
    from prony.errors import InputError

    if bool(options.models) == bool(options.command):
        what = "both a model and a command were given" if options.models else "nothing to measure"
        hint = "try prony bench model.onnx, prony bench zoo:mobilenet-v2 or prony bench --command 'python train.py'"
        raise InputError(what, hint=hint)
    foreign = _OF_MODELS if options.command else _OF_COMMANDS
    named = next((name for name in (*foreign, *(("repeats",) if options.command else ())) if vars(options)[name]), None)
    if named is not None:
        whose = "models" if options.command else "commands"
        is_count = bool(options.command) and named in ("repeats", "time")
        hint = "for a command, --runs sets the number of executions" if is_count else "leave it out"
        raise InputError(f"--{named.replace('_', '-')} is for {whose}", hint=hint)
    return _command_request(options) if options.command else _model_request(options)


def _model_request(options: Namespace) -> ModelRequest:
    from prony.app.model_recipe import ModelRequest
    from prony.model.quantity import read_seconds

    engines = options.engine or options.engines or ""
    return ModelRequest(
        models=tuple(options.models),
        engines=tuple(dict.fromkeys(filter(None, engines.split(",")))),
        units=tuple(dict.fromkeys(filter(None, (options.unit or "").split(",")))),
        batch_sizes=options.batch or (),
        threads=options.threads or (),
        precision=options.precision,
        shapes=dict(options.shape or ()),
        runs=options.runs,
        time_ns=None if options.time is None else round(read_seconds(options.time, "--time", "30s") * 10**9),
        repeats=options.repeats,
    )


def _command_request(options: Namespace) -> CommandRequest:
    from prony.app.command_recipe import CommandRequest
    from prony.errors import InputError

    parameters: dict[str, tuple[str, ...]] = {}
    for name, values in options.parameter_list or ():
        if name in parameters:
            raise InputError(f"-L {name} is given twice", hint="put all values in one list")
        parameters[name] = tuple(values.split(","))
    return CommandRequest(
        commands=tuple(options.command), parameters=parameters, runs=options.runs, warmup=options.warmup or 0
    )


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return int(text)


def _counts(text: str) -> tuple[int, ...]:
    return tuple(dict.fromkeys(_count(word) for word in text.split(",")))


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, sizes = text.rpartition("=")
    if sizes == "scalar" and name:
        return name, ()
    if not equals or not name or re.fullmatch(r"\d+([x,]\d+)*", sizes) is None:
        raise ArgumentTypeError(f"{text!r} is not INPUT=SIZES; example: input=1x3x320x320 (or =scalar)")
    return name, tuple(int(word) for word in re.split("[x,]", sizes))
