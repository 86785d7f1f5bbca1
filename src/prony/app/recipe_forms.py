"""The short forms for new recipes that write what a command would of its options."""

from __future__ import annotations

from prony.app.hardware_recipe import COLLECTIVE_TEST, GPU_TESTS, UNIT_TESTS
from prony.model.check import Named
from prony.model.kind_card import FormField
from prony.model.recipe_form import RecipeForm

MODEL, ENGINE, UNIT, COMMAND = "workload.model", "workload.engine", "workload.unit", "workload.command"
NAME, REPEATS, DEVICE = "name", "measure.repeats", "place.where.device"
LLM_NUMBERS = {"prompt": "Prompt lengths", "generate": "Tokens to generate", "batch": "Sequences at once"}
_TEST_NAMES = (*(test for tests in UNIT_TESTS.values() for test in tests), *GPU_TESTS, COLLECTIVE_TEST)
_DEVICE_FIELD = FormField(
    path=DEVICE, label="Device", value="", help="its name in the fleet; empty: any that fits", is_required=False
)
_UNIT_FIELD = FormField(path=UNIT, label="Units", value="cpu", help="cpu, cuda, cuda-1, …", takes_several=True)
_RUNS_FIELD = FormField(path=REPEATS, label="Runs", value="5", help="fresh processes", is_text=False)

BENCH_FORM = RecipeForm(
    name="bench",
    label="a model on an engine",
    about="As prony bench: two models run alternately and are compared.",
    fields=(
        FormField(path=MODEL, label="Models", value="zoo:mobilenet-v2", takes_several=True),
        FormField(path=ENGINE, label="Engines", value="onnxruntime", takes_several=True),
        _UNIT_FIELD,
        FormField(
            path="workload.batch_size", label="Batch sizes", value="1", help="one job for each", takes_several=True,
            is_text=False,
        ),
        FormField(
            path=REPEATS, label="Runs", value="", help="fresh processes; empty: 5, for two models 10", is_text=False,
            is_required=False,
        ),
        _DEVICE_FIELD,
    ),
)  # fmt: skip
LLM_FORM = RecipeForm(
    name="llm",
    label="a language model",
    about="As prony llm: how fast it reads prompts and writes tokens.",
    fields=(
        FormField(path=MODEL, label="Model", value="zoo:llm-1m", help="zoo:NAME, hf:ORG/NAME, a URL, or a path there"),
        FormField(
            path=ENGINE, label="Engines", value="", help="empty: from the model's format", takes_several=True,
            is_required=False,
        ),
        _UNIT_FIELD,
        *(
            FormField(path=f"workload.{name}", label=label, value=value, takes_several=True, is_text=False)
            for (name, label), value in zip(LLM_NUMBERS.items(), ("512", "128", "1"), strict=True)
        ),
        _RUNS_FIELD,
        _DEVICE_FIELD,
    ),
)  # fmt: skip
HARDWARE_FORM = RecipeForm(
    name="hardware",
    label="a machine's bare hardware",
    about="As prony hardware: memory, matrix products, disk, GPUs.",
    fields=(
        FormField(path=UNIT, label="Units", value="cpu, disk", help="cpu, disk, cuda, cuda-1, …", takes_several=True),
        FormField(
            path="workload.test", label="Tests", value="", help=f"empty: all of the units. {', '.join(_TEST_NAMES)}",
            takes_several=True, is_required=False,
        ),
        FormField(
            path="workload.library", label="Library for the CPU", value="numpy", is_choice=True,
            choices=(Named(name="numpy"), Named(name="torch")),
        ),
        _RUNS_FIELD,
        _DEVICE_FIELD,
    ),
)  # fmt: skip
COMMAND_FORM = RecipeForm(
    name="command",
    label="a script or a command",
    about="As prony bench --command: it runs without a shell, on an agent that allows scripts.",
    fields=(
        FormField(
            path=COMMAND, label="Commands", value="python3 -c 'print(sum(range(10**6)))'", has_lines=True,
            help="one in each line; two run alternately and are compared",
        ),
        FormField(path=REPEATS, label="Executions", value="10", is_text=False),
        FormField(path="measure.warmup", label="Warm-up executions", value="0", is_text=False),
        _DEVICE_FIELD,
    ),
)  # fmt: skip
DUET_FORM = RecipeForm(
    name="duet",
    label="two variants of the recipe in the editor",
    about="As prony duet: both run alternately on one machine and are compared pair by pair. Comments are not kept.",
    changes_recipe=True,
    fields=(
        FormField(
            path="duet.a", label="Side a", value="threads=1", help="PATH=VALUE, one in each line", has_lines=True,
            is_required=False,
        ),
        FormField(
            path="duet.b", label="Side b", value="threads=2", help="compared with side a", has_lines=True,
            is_required=False,
        ),
        FormField(path="duet.pairs", label="Runs of each side", value="10", is_text=False),
    ),
)  # fmt: skip
