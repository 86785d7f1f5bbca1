"""Write a language model of the zoo as an ONNX graph with the settings that onnxruntime-genai reads beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from prony.plugins.models.zoo.graph import IR_VERSION, OPSET, onnx_package
from prony.plugins.models.zoo.llm_cards import LlmCard, tensors
from prony.ports.engine import Array
from prony.ports.llm import seeded_values

GRAPH = "model.onnx"
_KEY, _VALUE = "past_key_values.%d.key", "past_key_values.%d.value"
_NEW_KEY, _NEW_VALUE = "present.%d.key", "present.%d.value"


def genai_settings(card: LlmCard) -> dict[str, Any]:
    """Return what stands in `genai_config.json`."""
    decoder = {
        "session_options": {"provider_options": []}, "filename": GRAPH, "head_size": card.width // card.heads,
        "hidden_size": card.width, "num_attention_heads": card.heads, "num_hidden_layers": card.layers,
        "num_key_value_heads": card.kv_heads,
        "inputs": {"input_ids": "input_ids", "attention_mask": "attention_mask", "past_key_names": _KEY,
                   "past_value_names": _VALUE},
        "outputs": {"logits": "logits", "present_key_names": _NEW_KEY, "present_value_names": _NEW_VALUE},
    }  # fmt: skip
    model = {"type": "llama", "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 2, "vocab_size": card.vocabulary,
             "context_length": card.context, "decoder": decoder}  # fmt: skip
    return {"model": model, "search": {"max_length": card.context, "do_sample": False, "num_beams": 1}}


def write_onnx_llm(card: LlmCard, path: Path, seed: int, *, epsilon: float, rope: float) -> None:
    """Write the graph in float32, with a cache of keys and values as inputs and outputs."""
    graph = _LlamaGraph(card, seed, epsilon)
    path.write_bytes(graph.build(rope).SerializeToString(deterministic=True))


class _LlamaGraph:
    """Llama's layers, by the operators that ONNX Runtime has for them."""

    def __init__(self, card: LlmCard, seed: int, epsilon: float) -> None:
        self.onnx, self.card, self.seed, self.epsilon = onnx_package(), card, seed, epsilon
        self.nodes: list[Any] = []
        self.weights: list[Any] = []
        self.shapes = {theirs: shape for theirs, _, shape in tensors(card)}

    def build(self, rope: float) -> Any:
        helper, card = self.onnx.helper, self.card
        self._add_lengths()
        self._add_rotation(rope)
        embedding = self._weight("model.embed_tokens")
        flow = self._node("Gather", [embedding, "input_ids"], "embedded")
        for layer in range(card.layers):
            flow = self._layer(layer, flow)
        flow = self._normalise(flow, "model.norm")
        head = "model.embed_tokens" if card.is_tied else "lm_head"
        self._node("MatMul", [flow, self._weight(head, name="head", is_turned=True)], "logits")
        inputs = [self._value("input_ids", ["batch", "tokens"], "int64"),
                  self._value("attention_mask", ["batch", "total"], "int64")]  # fmt: skip
        outputs = [self._value("logits", ["batch", "tokens", card.vocabulary])]
        for layer in range(card.layers):
            for names, listed, length in (((_KEY, _VALUE), inputs, "past"), ((_NEW_KEY, _NEW_VALUE), outputs, "total")):
                shape = ["batch", card.kv_heads, length, card.width // card.heads]
                listed += [self._value(name % layer, shape) for name in names]
        graph = helper.make_graph(self.nodes, card.name, inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
        return helper.make_model(graph, producer_name="prony", opset_imports=opsets, ir_version=IR_VERSION)

    def _add_lengths(self) -> None:
        """Make of the mask what attention asks for: the last place of each sequence, and the longest length."""
        ones = self._constant(np.array([1], np.int64), "one")
        summed = self._node("ReduceSum", ["attention_mask", ones], "summed", keepdims=0)
        last = self._node("Sub", [summed, ones], "last")
        self._node("Cast", [last], "seqlens_k", to=self.onnx.TensorProto.INT32)
        shape = self._node("Shape", ["attention_mask"], "mask_shape")
        length = self._node("Gather", [shape, self._constant(np.array(1, np.int64), "second")], "length")
        self._node("Cast", [length], "total_length", to=self.onnx.TensorProto.INT32)

    def _add_rotation(self, rope: float) -> None:
        head = self.card.width // self.card.heads
        turns = 1.0 / rope ** (np.arange(0, head, 2, dtype=np.float64) / head)
        angles = np.outer(np.arange(self.card.context), turns)
        self._constant(np.cos(angles).astype(np.float32), "cosines")
        self._constant(np.sin(angles).astype(np.float32), "sines")

    def _layer(self, layer: int, flow: str) -> str:
        name, card = f"model.layers.{layer}", self.card
        normal = self._normalise(flow, f"{name}.input_layernorm")
        parts = [self._product(normal, f"{name}.self_attn.{one}_proj") for one in "qkv"]
        caches = [_KEY % layer, _VALUE % layer]
        given = [*parts, *caches, "seqlens_k", "total_length", "cosines", "sines"]
        made = [f"{name}.attended", _NEW_KEY % layer, _NEW_VALUE % layer]
        self.nodes.append(self.onnx.helper.make_node(
            "GroupQueryAttention", given, made, name=f"{name}.attention", domain="com.microsoft", num_heads=card.heads,
            kv_num_heads=card.kv_heads, do_rotary=1, rotary_interleaved=0,
        ))  # fmt: skip
        flow = self._node("Add", [flow, self._product(made[0], f"{name}.self_attn.o_proj")], f"{name}.after_attention")
        normal = self._normalise(flow, f"{name}.post_attention_layernorm")
        gate = self._product(normal, f"{name}.mlp.gate_proj")
        opened = self._node("Mul", [gate, self._node("Sigmoid", [gate], f"{name}.sigmoid")], f"{name}.silu")
        inner = self._node("Mul", [opened, self._product(normal, f"{name}.mlp.up_proj")], f"{name}.inner")
        return self._node("Add", [flow, self._product(inner, f"{name}.mlp.down_proj")], f"{name}.after_mlp")

    def _normalise(self, flow: str, name: str) -> str:
        given = [flow, self._weight(name)]
        return self._node("SimplifiedLayerNormalization", given, f"{name}.normal", axis=-1, epsilon=self.epsilon)

    def _product(self, flow: str, name: str) -> str:
        return self._node("MatMul", [flow, self._weight(name, is_turned=True)], f"{name}.product")

    def _weight(self, theirs: str, *, name: str = "", is_turned: bool = False) -> str:
        """Add the seeded weights of a tensor; those of a product have a column for each output."""
        values = seeded_values(f"{theirs}.weight", self.shapes[f"{theirs}.weight"], self.seed)
        return self._constant(np.ascontiguousarray(values.T) if is_turned else values, name or theirs)

    def _constant(self, values: Array, name: str) -> str:
        self.weights.append(self.onnx.numpy_helper.from_array(values, name))
        return name

    def _node(self, kind: str, inputs: list[str], output: str, **attributes: Any) -> str:
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [output], name=output, **attributes))
        return output

    def _value(self, name: str, shape: list[Any], dtype: str = "float32") -> Any:
        kind = self.onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.onnx.helper.make_tensor_value_info(name, kind, shape)
