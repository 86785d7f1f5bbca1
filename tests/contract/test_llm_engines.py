"""What every engine for language models must do, asked of each one that can be had without PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from prony.errors import CapacityError, InputError, SutError
from prony.kinds.llm.child.speculate import Drafter, DraftModel, PromptLookup, require_verifier, speculate
from prony.plugins.engines.llamacpp import Llamacpp
from prony.plugins.engines.mlx import Mlx
from prony.plugins.engines.null import Null, NullLlm
from prony.plugins.engines.onnxruntime_genai import OnnxRuntimeGenai
from prony.plugins.engines.openvino_genai import OpenVinoGenai
from prony.plugins.models.zoo import ZooSource
from prony.plugins.models.zoo.llm import write_gguf
from prony.plugins.models.zoo.llm_cards import LLM_ZOO
from prony.ports.engine import LoadOptions
from prony.ports.llm import CHAT_TEMPLATE, LlmEngine, LlmOptions, LlmSession, VerifiesDrafts, empty_cache
from prony.ports.models import FOLDER, GENAI_FOLDER, FetchOptions
from servers.needs import lack
from servers.packaged import environment

PROMPT = np.array([[7, 30, 99, 41, 200]], np.int32)
Load = Callable[..., LlmSession]


@pytest.fixture(scope="session")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("llm") / "tiny.gguf"
    write_gguf(LLM_ZOO["llm-1m"], path)
    return path


def llamacpp(monkeypatch: pytest.MonkeyPatch) -> Llamacpp:
    """Return the engine, with the library from wherever the tests' servers are installed."""
    reach_package("xllamacpp", monkeypatch)
    return Llamacpp()


def reach_package(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    places = list(environment().parent.glob(f"lib/python3*/site-packages/{name}"))
    if not places:
        lack(name, f"no {name} here: pip install {name} into {environment().parent}")
    monkeypatch.syspath_prepend(str(places[0].parent))


@pytest.fixture(scope="session")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as a folder of onnxruntime-genai."""
    options = FetchOptions(cache=tmp_path_factory.mktemp("zoo"), formats=(GENAI_FOLDER,))
    return ZooSource().fetch("zoo:llm-1m", options, lambda *_: None).path


@pytest.fixture(scope="session")
def seeded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model as a folder in Hugging Face's layout."""
    options = FetchOptions(cache=tmp_path_factory.mktemp("zoo"), formats=(FOLDER,))
    return ZooSource().fetch("zoo:llm-1m", options, lambda *_: None).path


@pytest.fixture(scope="session")
def converted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where an engine keeps what it made of a file."""
    return tmp_path_factory.mktemp("converted")


def find_engine(name: str, monkeypatch: pytest.MonkeyPatch) -> LlmEngine:
    if name == "null":
        return Null()
    if name == "llamacpp":
        return llamacpp(monkeypatch)
    if name == "mlx":
        reach_package("mlx_lm", monkeypatch)
        return Mlx()
    reach_package(name.replace("-", "_"), monkeypatch)
    return OpenVinoGenai() if name == "openvino-genai" else OnnxRuntimeGenai()


@pytest.fixture(params=["null", "llamacpp", "openvino-genai", "onnxruntime-genai", "mlx"])
def load(
    request: pytest.FixtureRequest, gguf: Path, graph: Path, seeded: Path, converted: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Load:  # fmt: skip
    """Return what loads a small model with so many sequences."""
    engine = find_engine(request.param, monkeypatch)
    path = {"null": "llm-0us-0us.null", "onnxruntime-genai": str(graph), "mlx": str(seeded)}.get(
        request.param, str(gguf)
    )
    # On some processors OpenVINO takes a type of its own choice in which it cannot compute every product.
    precision = "fp32" if request.param in ("openvino-genai", "mlx") else "default"

    def make(batch: int = 1, unit: str = "cpu") -> LlmSession:
        options = LlmOptions(unit=unit, batch=batch, context=64, precision=precision, cache=str(converted))
        return engine.load_llm(path, options)

    return make


def test_it_writes_exactly_what_is_asked_and_calls_back_for_each(load: Load) -> None:
    session, calls = load(), []
    written = session.generate(session.prefill(PROMPT), 6, lambda: calls.append(1))
    assert (written.shape, len(calls)) == ((1, 6), 6)
    assert ((written >= 0) & (written < session.facts().vocabulary)).all()


def test_an_emptied_cache_gives_the_same_again(load: Load) -> None:
    session = load()
    first = session.generate(session.prefill(PROMPT), 4, lambda: None)
    session.reset()
    assert (session.generate(session.prefill(PROMPT), 4, lambda: None) == first).all()


def test_a_prompt_in_two_pieces_is_the_prompt(load: Load) -> None:
    session = load()
    whole = session.prefill(PROMPT)
    session.reset()
    session.prefill(PROMPT[:, :2])
    assert (session.prefill(PROMPT[:, 2:]) == whole).all()


def test_sequences_of_a_batch_do_not_know_each_other(load: Load) -> None:
    rows = np.vstack([PROMPT, PROMPT[:, ::-1]])
    both = load(2)
    together = both.generate(both.prefill(rows), 4, lambda: None)
    for row, wanted in zip(rows, together, strict=True):
        alone = load()
        assert alone.generate(alone.prefill(row[None]), 4, lambda: None)[0].tolist() == wanted.tolist()


def test_predictions_of_a_text_end_with_that_of_its_prompt(load: Load) -> None:
    session = load()
    logits = session.logits(PROMPT[0])
    assert logits.shape == (PROMPT.size, session.facts().vocabulary)
    session.reset()
    assert logits[-1].argmax() == session.prefill(PROMPT)[0]


def test_its_cache_grows_by_the_same_for_every_token(load: Load) -> None:
    session = load(2)
    session.prefill(np.vstack([PROMPT, PROMPT]))
    assert session.kv_bytes() == 2 * PROMPT.size * session.facts().kv_token_bytes
    session.reset()
    assert session.kv_bytes() == 0


def test_the_engine_itself_says_what_is_left_in_its_cache(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    session = load()
    if isinstance(session, NullLlm):
        return  # its count is its cache
    session.prefill(PROMPT)
    monkeypatch.setattr(session, "_held", 0)  # as if it had emptied it
    assert session.kv_bytes() >= PROMPT.size * session.facts().kv_token_bytes
    monkeypatch.setattr(session, "reset", lambda: None)
    with pytest.raises(SutError) as told:
        empty_cache(session)
    assert told.value.code == "cache_not_empty"


def test_it_says_what_the_model_is(load: Load) -> None:
    about = load().facts()
    assert about.weights_bytes > 0
    assert about.parameters is None or about.parameters > 0
    assert len(about.tokenizer_sha256) == 64


def test_a_text_has_the_same_ids_every_time(load: Load) -> None:
    session = load()
    assert session.tokenize("a text") == session.tokenize("a text") != []


def test_a_prompt_holds_what_is_asked_and_says_in_which_form(load: Load) -> None:
    session = load()
    found = session.encode_prompt([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Why so?"}])
    assert {"Be brief.", "Why so?"} <= set(session.detokenize(found.ids).strip().splitlines())
    assert found.form == CHAT_TEMPLATE or found.form.startswith("plain text: ")


def test_a_text_survives_its_ids_and_the_end_is_a_token(load: Load) -> None:
    session = load()
    assert session.detokenize(session.tokenize("Größe, 5 €")).strip() == "Größe, 5 €"
    assert session.end_ids()
    assert session.end_ids() <= set(range(session.facts().vocabulary))


def test_a_unit_that_is_not_there_is_refused(load: Load) -> None:
    with pytest.raises(CapacityError) as told:
        load(unit="cuda-9")
    assert told.value.code == "unit_unavailable"


@pytest.mark.parametrize("guesses", ["lookup", "itself", "another"])
def test_guessed_tokens_change_no_text(load: Load, guesses: str) -> None:
    session = load()
    if not isinstance(session, VerifiesDrafts):
        with pytest.raises(CapacityError, match="does not support speculative decoding") as told:
            require_verifier(session, "it")
        assert told.value.code == "draft_unavailable"
        return
    wanted = session.generate(first := session.prefill(PROMPT), 24, lambda: None)[0].tolist()
    session.reset()
    drafters: dict[str, Drafter] = {"lookup": PromptLookup(), "itself": DraftModel(load()), "another": Stubborn()}
    drafter = drafters[guesses]
    session.prefill(PROMPT)
    text = [*PROMPT[0].tolist(), int(first[0])]
    drafter.begin(text)
    steps = list(speculate(session, drafter, text, 24, 4))
    assert [token for step in steps for token in step.tokens] == text[-24:] == wanted
    assert session.kv_bytes() == (PROMPT.size + 24) * session.facts().kv_token_bytes
    if guesses == "itself":  # every guess is right: five tokens a step
        assert [len(step.tokens) for step in steps] == [5, 5, 5, 5, 4]


class Stubborn:
    """Guesses the same token for ever, which is nearly always wrong."""

    def begin(self, text: Sequence[int]) -> None:
        """It keeps nothing."""

    def propose(self, text: Sequence[int], most: int) -> list[int]:
        return [int(text[0])] * most


def test_a_cache_of_a_seeded_llama_has_the_size_of_its_keys_and_values(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = llamacpp(monkeypatch).load_llm(str(gguf), LlmOptions(context=64)).facts()
    card = LLM_ZOO["llm-1m"]
    wanted = 2 * card.layers * card.kv_heads * (card.width // card.heads) * 2
    assert found.kv_token_bytes == pytest.approx(wanted, rel=0.02)
    assert found.vocabulary == card.vocabulary


@pytest.mark.parametrize(
    ("spoil", "word"),
    [
        (lambda data: data[: len(data) // 2], "incomplete"),
        (lambda data: data.replace(b"\x05\0\0\0\0\0\0\0llama", b"\x05\0\0\0\0\0\0\0llamo", 1), "llamo"),
        (lambda _: b"no model", "not a GGUF file"),
    ],
    ids=["truncated", "architecture", "nothing"],
)
def test_a_file_that_cannot_be_loaded_is_told_in_words(
    spoil: Callable[[bytes], bytes], word: str, gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spoilt.gguf"
    path.write_bytes(spoil(gguf.read_bytes()))
    with pytest.raises(InputError, match=word) as told:
        llamacpp(monkeypatch).load_llm(str(path), LlmOptions(context=64))
    assert told.value.code == "damaged_model"


@pytest.mark.parametrize("name", ["openvino-genai", "onnxruntime-genai", "mlx"])
def test_the_same_seeded_weights_predict_the_same_on_every_engine(
    name: str, gguf: Path, graph: Path, seeded: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = llamacpp(monkeypatch).load_llm(str(gguf), LlmOptions(context=64)).logits(PROMPT[0])
    path = {"onnxruntime-genai": graph, "mlx": seeded}.get(name, gguf)
    precision = "default" if name == "onnxruntime-genai" else "fp32"
    asked = LlmOptions(context=64, precision=precision, cache=str(converted))
    found = find_engine(name, monkeypatch).load_llm(str(path), asked).logits(PROMPT[0])
    assert found == pytest.approx(wanted, abs=0.01)


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:500], lambda data: data[:-1000], lambda _: b"no model"],
    ids=["head", "last tensor", "nothing"],
)
def test_openvino_tells_of_a_spoilt_file_in_words(
    spoil: Callable[[bytes], bytes], gguf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "spoilt.gguf"
    path.write_bytes(spoil(gguf.read_bytes()))
    with pytest.raises(InputError) as told:
        find_engine("openvino-genai", monkeypatch).load_llm(str(path), LlmOptions())
    assert told.value.code == "damaged_model"


@pytest.mark.parametrize("name", ["openvino-genai", "onnxruntime-genai"])
def test_a_folder_of_another_form_is_refused_with_the_file_that_it_lacks(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match=r"has no (openvino_model.xml|genai_config.json)") as told:
        find_engine(name, monkeypatch).load_llm(str(tmp_path), LlmOptions())
    assert told.value.code == "damaged_model"


def test_a_tokenizer_that_cuts_long_texts_is_found_out(
    gguf: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = find_engine("openvino-genai", monkeypatch)
    session = engine.load_llm(str(gguf), LlmOptions(context=64, precision="fp32", cache=str(converted)))
    with pytest.raises(InputError, match="cuts texts at 8192"):
        session.tokenize("a b " * 5000)


def test_openvino_names_a_precision_to_try_where_it_cannot_compile(
    gguf: Path, converted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = find_engine("openvino-genai", monkeypatch)

    def fail(*_: object) -> None:
        raise RuntimeError("Exception from core.cpp:1:\ncould not create a primitive. Run it again.")

    monkeypatch.setattr("openvino.Core.compile_model", fail)
    with pytest.raises(SutError, match=r"for CPU: could not create a primitive\. Run it again$") as caught:
        engine.load_llm(str(gguf), LlmOptions(context=64, cache=str(converted)))
    assert "--precision fp32" in caught.value.hint


def test_onnxruntime_genai_reads_the_prompts_of_a_batch_once(graph: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = find_engine("onnxruntime-genai", monkeypatch).load_llm(str(graph), LlmOptions(batch=2, context=64))
    session.prefill(np.vstack([PROMPT, PROMPT]))
    with pytest.raises(CapacityError, match="with an empty cache"):
        session.prefill(np.vstack([PROMPT, PROMPT]))


def test_onnxruntime_genai_names_the_build_that_has_a_missing_unit(
    graph: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CapacityError) as told:
        find_engine("onnxruntime-genai", monkeypatch).load_llm(str(graph), LlmOptions(unit="cuda"))
    assert told.value.hint == "available: cpu; or prony engines add onnxruntime-genai-cuda"


def test_an_engine_for_language_models_refuses_a_plain_model() -> None:
    with pytest.raises(InputError, match="measured by their tokens"):
        Llamacpp().load("model.gguf", LoadOptions(unit="cpu", threads=1))


def test_a_smaller_type_of_the_cache_takes_less_and_writes_nearly_the_same(
    gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = llamacpp(monkeypatch)
    made = {name: engine.load_llm(str(gguf), LlmOptions(context=64, kv_type=name)) for name in ("f16", "q8_0", "q4_0")}
    sizes = {name: one.facts().kv_token_bytes for name, one in made.items()}
    assert sizes["f16"] / sizes["q8_0"] == pytest.approx(16 / 8.5, rel=0.05)
    assert sizes["f16"] / sizes["q4_0"] == pytest.approx(16 / 4.5, rel=0.05)
    reference, near = (made[name].logits(PROMPT[0]) for name in ("f16", "q8_0"))
    assert np.abs(reference - near).max() < 0.1 * np.abs(reference).max()
    assert "q8_0" in made["q8_0"].effect().details["cache"]


def test_llamacpp_says_how_many_sequences_it_takes(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(CapacityError, match=r"for 4096 sequences: .*n_seq_max must be") as told:
        llamacpp(monkeypatch).load_llm(str(gguf), LlmOptions(context=64, batch=4096))
    assert told.value.code == "engine_limit"


def test_an_option_that_llamacpp_does_not_have_is_refused(gguf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="no option 'draft'"):
        llamacpp(monkeypatch).load_llm(str(gguf), LlmOptions(context=64, options={"draft": "small.gguf"}))
