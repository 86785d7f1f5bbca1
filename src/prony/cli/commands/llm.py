"""`prony llm`: measure how fast a language model reads prompts and writes tokens, without a recipe."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prony.cli.arguments import add_recipe_run

if TYPE_CHECKING:
    from prony.app.llm_recipe import LlmRequest

_PRECISIONS = ("default", "fp32", "fp16", "bf16", "int8")
_WORDS = ("unit", "precision", "kv_type", "draft")
_REFERENCES = ("reference", "reference_engine")
_NUMBERS = ("prompt", "generate", "batch", "depth", "draft_tokens")
_ALL = "all"


def arguments(parser: ArgumentParser) -> None:
    """Measure a language model: prefill (pp512) and decode (tg128) speed, at context depths and batch sizes.
    Separate several values of an option by commas. The result is stored like any other experiment."""
    parser.add_argument(
        "model", metavar="MODEL", help="a GGUF file, a Hugging Face folder, hf:ORG/NAME, zoo:llm-NAME or a URL"
    )
    parser.add_argument(
        "--engine",
        metavar="NAMES",
        help="llamacpp, transformers, openvino-genai, ... (default: from the model's format)",
    )
    parser.add_argument(
        "--engines", choices=(_ALL,), help="all: every installed engine that supports the model, run alternately"
    )
    parser.add_argument("--unit", default="cpu", metavar="NAMES", help="cpu, cuda, cuda-1, ... (cpu)")
    parser.add_argument("--prompt", default="512", metavar="TOKENS", help="prompt lengths in tokens; 0: none (512)")
    parser.add_argument("--generate", default="128", metavar="TOKENS", help="tokens to generate; 0: none (128)")
    parser.add_argument("--batch", default="1", metavar="N", help="batch size: parallel sequences (1)")
    parser.add_argument("--depth", default="0", metavar="TOKENS", help="tokens already in the cache (0)")
    parser.add_argument("--threads", metavar="N", help="threads of the engine (every CPU)")
    parser.add_argument(
        "--precision", default="default", metavar="NAMES", help=f"{', '.join(_PRECISIONS)} (default: the engine's own)"
    )
    parser.add_argument(
        "--kv-type",
        default="default",
        metavar="NAMES",
        help="type of the KV cache: f16, q8_0, q4_0, ... (default: the engine's own)",
    )
    parser.add_argument(
        "--draft", default="none", metavar="NAMES",
        help="speculative decoding: none, lookup (guess from the text) or a smaller model (none)",
    )  # fmt: skip
    parser.add_argument("--draft-tokens", default="4", metavar="N", help="with --draft: most guesses for a step (4)")
    parser.add_argument("--passes", type=int, default=3, metavar="N", help="repetitions in each process (3)")
    parser.add_argument("--runs", type=int, default=5, metavar="N", help="fresh processes for each configuration (5)")
    parser.add_argument("--task", metavar="NAME", help="score answers or texts: summarize, qa, classify, perplexity")
    parser.add_argument("--quality", action="store_true", help="also compare predictions with an fp32 reference")
    parser.add_argument("--reference", metavar="MODEL", help="with --quality: another model to compare with")
    parser.add_argument("--reference-engine", metavar="NAME", help="with --quality: engine of that model (the same)")
    parser.add_argument(
        "--option", action="append", default=[], metavar="KEY=VALUE", help="option for the engine; repeatable"
    )
    add_recipe_run(parser)


def command(options: Namespace) -> int:
    from prony.app.llm_recipe import draft_llm_recipe
    from prony.cli.remote import server_address
    from prony.cli.run_written import run_written

    is_remote = server_address(options) is not None
    written = draft_llm_recipe(request_llm(options, _choose_engines(options, is_remote=is_remote)))
    return run_written(written, options, is_remote=is_remote)


def request_llm(options: Namespace, engines: Sequence[str]) -> LlmRequest:
    """Return what these options ask for."""
    from prony.app.llm_recipe import LlmRequest

    lists: dict[str, tuple[Any, ...]] = {"engine": tuple(engines)}
    lists |= {name: _words(getattr(options, name)) for name in _WORDS}
    names = (*_NUMBERS, *(("threads",) if options.threads else ()))
    lists |= {name: _numbers(name, getattr(options, name)) for name in names}
    others: dict[str, Any] = {"task": options.task} if options.task is not None else {}
    others |= {"quality": True} if options.quality else {}
    others |= {name: value for name in _REFERENCES if (value := getattr(options, name)) is not None}
    others |= {"options": dict(map(_option, options.option))} if options.option else {}
    return LlmRequest(options.model, lists, passes=options.passes, runs=options.runs, others=others)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, text.split(","))))


def _numbers(name: str, text: str) -> tuple[int, ...]:
    from prony.errors import InputError

    words, option = _words(text), name.replace("_", "-")
    if not words or not all(word.isdecimal() for word in words):
        raise InputError(f"--{option} {text!r} is not a list of numbers", hint=f"for example --{option} 512,2048")
    return tuple(int(word) for word in words)


def _option(text: str) -> tuple[str, Any]:
    import yaml

    from prony.errors import InputError

    key, equals, value = text.partition("=")
    if not equals or not key:
        raise InputError(f"--option {text!r} is not KEY=VALUE", hint="for example --option attention=sdpa")
    try:
        return key, yaml.safe_load(value)
    except yaml.YAMLError as exc:
        raise InputError(f"--option {text!r}: {exc}", hint="put quotes around values with brackets") from exc


def _choose_engines(options: Namespace, *, is_remote: bool) -> list[str]:
    """Return the engines that were named, or those that load the model's format."""
    from prony.app.llm_recipe import fitting_engines

    if options.engine:
        return list(_words(options.engine))
    folder = Path(options.model.removeprefix("file:"))
    if not is_remote:
        _check_presence(options.model)
    files = [one.name for one in folder.iterdir()] if folder.is_dir() else ()
    fitting = fitting_engines(options.model, files, is_file=folder.is_file())
    if options.engines == _ALL and not is_remote:
        from prony.app.bench import Bench
        from prony.cli.output import print_note
        from prony.errors import CapacityError

        with Bench.open() as bench:
            reports = bench.engines(fitting)
        for one in reports:
            if one.state != "ready":
                print_note(f"without {one.name}: {one.reason}; {one.hint}")
        ready = [one.name for one in reports if one.state == "ready"]
        if not ready:
            raise CapacityError(
                f"no installed engine supports {options.model}", hint=f"install one: prony engines add {fitting[0]}"
            )
        return ready
    return fitting if options.engines == _ALL else fitting[:1]


def _check_presence(model: str) -> None:
    """Refuse a path that does not exist, before the engine of its format is missed."""
    from prony.errors import NotFoundError
    from prony.ports.models import scheme_of

    path = Path(model.removeprefix("file:")).expanduser()
    if scheme_of(model) == "file" and not path.exists():
        hint = "give a file or folder that exists; to try the command: prony llm zoo:llm-1m"
        raise NotFoundError(f"model not found: {path.absolute()}", hint=hint, code="unknown_model")
