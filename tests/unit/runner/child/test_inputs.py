"""Inputs are made for any model, and every choice says where it came from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prony.errors import InputError, NotFoundError
from prony.ports.engine import UNKNOWN_RANK, TensorSpec
from prony.runner.child.bits import from_bfloat16, to_bfloat16
from prony.runner.child.inputs import MadeInput, make_inputs


def make(*specs: TensorSpec, **given: Any) -> dict[str, MadeInput]:
    defaults: dict[str, Any] = {"batch_size": 1, "axes": {}, "shapes": {}, "values": {}, "seed": 0}
    return {item.name: item for item in make_inputs(list(specs), **(defaults | given))}


IDS = TensorSpec("input_ids", "int64", ("batch", "sequence"), below=30522, below_source="rows of the embedding")
MASK = TensorSpec("attention_mask", "int64", ("batch", "sequence"))
TYPES = TensorSpec("token_type_ids", "int64", ("batch", "sequence"), below=2, below_source="rows of the embedding")
IMAGE = TensorSpec("images", "float32", ("N", 3, "height", "width"))


class TestSizes:
    def test_a_fixed_shape_is_left_alone(self) -> None:
        made = make(TensorSpec("x", "float32", (2, 3, 5)))["x"]
        assert made.array.shape == (2, 3, 5)
        assert made.shape_source == "model"

    def test_a_scalar_is_made(self) -> None:
        made = make(TensorSpec("scale", "float32", ()))["scale"]
        assert made.array.shape == ()
        assert made.array.dtype == np.float32

    def test_named_axes_follow_the_rules_and_say_so(self) -> None:
        made = make(IDS, MASK, TYPES, batch_size=4)
        assert {item.array.shape for item in made.values()} == {(4, 128)}
        assert made["input_ids"].shape_source == "batch_size; rule: sequence -> 128"

    def test_an_image_has_224_pixels_a_side(self) -> None:
        made = make(IMAGE)["images"]
        assert made.array.shape == (1, 3, 224, 224)
        assert made.shape_source == "batch_size; rule: height -> 224; rule: width -> 224"

    @pytest.mark.parametrize(
        "axis", ["batch", "N", "batch_size", "batchSize", "unk__0", "s0", "", None, "dim_0", "p2o.DynamicDimension.0"]
    )
    def test_a_first_axis_that_says_nothing_else_is_the_batch(self, axis: str | None) -> None:
        assert make(TensorSpec("x", "float32", (axis, 7)), batch_size=3)["x"].array.shape == (3, 7)

    def test_the_recipe_sets_an_axis_by_its_name_in_every_input(self) -> None:
        made = make(IDS, MASK, axes={"sequence": 7})
        assert {item.array.shape for item in made.values()} == {(1, 7)}
        assert made["attention_mask"].shape_source == "batch_size; recipe: inputs.axes.sequence"

    def test_a_whole_shape_also_decides_the_same_axis_elsewhere(self) -> None:
        made = make(IDS, MASK, shapes={"attention_mask": (1, 9)})
        assert made["input_ids"].array.shape == (1, 9)
        assert made["input_ids"].shape_source == "recipe: inputs.shapes.attention_mask"

    def test_a_mask_over_past_and_present_has_the_length_of_both(self) -> None:
        past = TensorSpec("past_key_values.0.key", "float32", ("batch", 4, "past_sequence_length", 8))
        for axis in ("total_sequence_length", "past_sequence_length + sequence_length"):
            mask = TensorSpec("attention_mask", "int64", ("batch", axis))
            ids = TensorSpec("input_ids", "int64", ("batch", "sequence_length"))
            made = make(ids, mask, past, axes={"sequence_length": 1, "past_sequence_length": 31})
            assert made["attention_mask"].array.shape == (1, 32)
            assert made["past_key_values.0.key"].array.shape == (1, 4, 31, 8)

    def test_an_axis_may_be_one_more_than_another(self) -> None:
        made = make(TensorSpec("attention_mask", "int64", ("batch", "past_sequence_length + 1")))
        assert made["attention_mask"].array.shape == (1, 129)

    def test_a_suggestion_of_the_model_beats_a_rule(self) -> None:
        spec = TensorSpec(
            "x", "float32", ("batch", 3, "height", "width"), suggested={2: (96, "metadata"), 3: (64, "m")}
        )
        made = make(spec)["x"]
        assert made.array.shape == (1, 3, 96, 64)
        assert "metadata" in made.shape_source

    def test_no_suggestion_of_the_model_decides_the_batch(self) -> None:
        spec = TensorSpec("x", "float32", ("batch", 3), suggested={0: (1, "metadata")})
        assert make(spec, batch_size=8)["x"].array.shape == (8, 3)

    def test_an_unnamed_axis_is_never_guessed(self) -> None:
        with pytest.raises(InputError, match=r"'x' \[\?, 3, \?, 5\].*axis 2, which has no name") as caught:
            make(TensorSpec("x", "float32", (None, 3, None, 5)), batch_size=2)
        assert "    shapes:\n      x: [2, 3, 224, 5]" in caught.value.hint
        assert caught.value.code == "unknown_size"

    def test_a_name_without_a_rule_is_never_guessed(self) -> None:
        with pytest.raises(InputError, match="axis 1, 'boxes'") as caught:
            make(TensorSpec("x", "float32", ("batch", "boxes")))
        assert "    axes:\n      boxes: 128" in caught.value.hint

    def test_all_inputs_without_a_size_are_asked_for_at_once_with_an_option_that_works(self) -> None:
        specs = (
            TensorSpec("sound", "float32", ("batch", None)),
            TensorSpec("state", "float32", (2, "batch", "cells")),
            TensorSpec("rate", "int64", ()),
        )
        with pytest.raises(InputError) as caught:
            make(*specs)
        assert "    axes:\n      cells: 128\n    shapes:\n      sound: [1, 128]" in caught.value.hint
        assert caught.value.hint.endswith("--shape sound=1x128 --shape state=2x1x128")
        made = make(*specs, shapes={"sound": (1, 128), "state": (2, 1, 128)})
        assert made["state"].array.shape == (2, 1, 128)

    def test_a_lone_unnamed_axis_of_floats_may_be_a_waveform_and_is_never_guessed(self) -> None:
        with pytest.raises(InputError, match="axis 0"):
            make(TensorSpec("waveform", "float32", (None,)))
        assert make(TensorSpec("labels", "int64", (None,)), batch_size=3)["labels"].array.shape == (3,)

    def test_an_unrecorded_shape_is_asked_for(self) -> None:
        spec = TensorSpec("x", "float32", UNKNOWN_RANK)
        with pytest.raises(InputError, match="does not record its shape") as caught:
            make(spec)
        assert "x: [1, 3, 224, 224]" in caught.value.hint
        assert make(spec, shapes={"x": (1, 5)})["x"].array.shape == (1, 5)

    def test_a_batch_that_the_model_cannot_take_is_refused(self) -> None:
        with pytest.raises(InputError, match="fixed batch: x has 1") as caught:
            make(TensorSpec("x", "float32", (1, 3)), batch_size=8)
        assert caught.value.code == "fixed_batch"

    def test_a_fixed_batch_of_the_asked_size_is_fine(self) -> None:
        assert make(TensorSpec("x", "float32", (8, 3)), batch_size=8)["x"].array.shape == (8, 3)

    def test_one_input_with_a_batch_is_enough(self) -> None:
        made = make(IMAGE, TensorSpec("threshold", "float32", (1,)), batch_size=2)
        assert made["images"].array.shape[0] == 2
        assert made["threshold"].array.shape == (1,)

    def test_the_batch_has_one_place_in_the_recipe(self) -> None:
        with pytest.raises(InputError, match=r"inputs.axes.batch is 4, but batch_size is 1"):
            make(IDS, axes={"batch": 4})
        with pytest.raises(InputError, match="axis batch is 4"):
            make(IDS, shapes={"input_ids": (4, 128)})

    def test_a_shape_that_contradicts_the_model_is_refused(self) -> None:
        for shape in ((1, 4, 8, 8), (1, 3, 8), (1, 3, -8, 8)):
            with pytest.raises(InputError):
                make(IMAGE, shapes={"images": shape})

    @pytest.mark.parametrize(
        ("given", "near"),
        [
            ({"axes": {"sequense": 4}}, "did you mean sequence?"),
            ({"shapes": {"input_id": (1, 4)}}, "did you mean input_ids?"),
            ({"values": {"input_idz": {"constant": 1}}}, "did you mean input_ids?"),
        ],
    )
    def test_an_unknown_name_is_answered_with_the_nearest(self, given: dict[str, Any], near: str) -> None:
        with pytest.raises(InputError) as caught:
            make(IDS, **given)
        assert caught.value.hint == near


class TestContents:
    def test_ids_stay_below_the_vocabulary(self) -> None:
        made = make(IDS, axes={"sequence": 4096})["input_ids"]
        assert made.array.min() >= 0
        assert 20000 < made.array.max() < 30522
        assert made.values_source == "seeded 0..30521, rows of the embedding"

    def test_an_unknown_bound_is_said_to_be_assumed(self) -> None:
        made = make(TensorSpec("ids", "int32", ("batch", "sequence")))["ids"]
        assert made.array.max() < 100
        assert made.values_source == "seeded, assumed below 100"

    def test_masks_are_ones_and_types_are_zeros(self) -> None:
        made = make(MASK, TYPES, TensorSpec("padding_mask", "bool", ("batch", "sequence")))
        assert made["attention_mask"].array.all()
        assert made["padding_mask"].array.all()
        assert not made["token_type_ids"].array.any()

    def test_positions_count_on_from_the_past(self) -> None:
        past = TensorSpec("past.0", "float32", ("batch", 2, "past_length", 4))
        position = TensorSpec("position_ids", "int64", ("batch", "sequence"))
        made = make(position, past, axes={"sequence": 3, "past_length": 5})
        assert made["position_ids"].array.tolist() == [[5, 6, 7]]

    def test_positions_stay_inside_their_table(self) -> None:
        position = TensorSpec("position_ids", "int64", (1, 6), below=4, below_source="rows")
        assert make(position)["position_ids"].array.tolist() == [[0, 1, 2, 3, 0, 1]]

    def test_lengths_tell_the_real_length(self) -> None:
        made = make(IDS, TensorSpec("input_lengths", "int64", ("batch",)), axes={"sequence": 17})
        assert made["input_lengths"].array.tolist() == [17]
        assert made["input_lengths"].values_source == "the real length, 17"

    def test_a_sampling_rate_is_16000(self) -> None:
        assert make(TensorSpec("sr", "int64", ()))["sr"].array == 16000

    def test_an_image_is_between_zero_and_one_and_other_floats_are_normal(self) -> None:
        made = make(IMAGE, TensorSpec("features", "float32", (1, 4000)))
        assert 0 <= made["images"].array.min() < made["images"].array.max() < 1
        assert abs(float(made["features"].array.std()) - 1) < 0.1
        assert made["features"].array.min() < 0

    def test_a_picture_of_bytes_uses_the_whole_byte(self) -> None:
        made = make(TensorSpec("image", "uint8", (1, 64, 64, 3)))["image"]
        assert (made.array.min(), made.array.max()) == (0, 255)

    @pytest.mark.parametrize(
        "dtype",
        ["float16", "float32", "float64", "complex64", "complex128", "bool"]
        + [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)],
    )
    def test_every_type_of_numpy_is_made(self, dtype: str) -> None:
        made = make(TensorSpec("x", dtype, (3, 4)))["x"]
        assert made.array.dtype == np.dtype(dtype)
        assert made.array.shape == (3, 4)
        assert len(np.unique(made.array)) > 1

    def test_text_is_made_of_words(self) -> None:
        made = make(TensorSpec("text", "str", ("batch", 5)))["text"]
        assert made.array.dtype == object
        assert all(isinstance(word, str) and word for word in made.array.reshape(-1))

    def test_bfloat16_is_fed_as_its_bits(self) -> None:
        made = make(TensorSpec("x", "bfloat16", (1, 1000)))["x"]
        assert made.array.dtype == np.uint16
        assert abs(float(from_bfloat16(made.array).std()) - 1) < 0.1

    def test_float8_is_fed_as_its_bits(self) -> None:
        made = make(TensorSpec("x", "float8e4m3fn", (1, 1000)))["x"]
        assert made.array.dtype == np.uint8
        assert set(np.unique(made.array & 0x7F)) <= set(range(0x28, 0x40))

    def test_a_type_that_cannot_be_held_is_refused(self) -> None:
        with pytest.raises(InputError, match="int4"):
            make(TensorSpec("x", "int4", (1, 4)))

    @given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False, allow_subnormal=False), min_size=1))
    @settings(deadline=None)
    def test_bfloat16_keeps_eight_bits_of_every_number(self, numbers: list[float]) -> None:
        values = np.asarray(numbers, dtype=np.float32)
        values = values[np.abs(values) < 3e38]
        back = from_bfloat16(to_bfloat16(values))
        assert np.all(np.abs(back - values) <= np.abs(values) * 2.0**-8)


class TestRecipeValues:
    def test_a_constant_fills_the_input(self) -> None:
        made = make(IMAGE, values={"images": {"constant": 0.5}}, axes={"height": 2, "width": 2})["images"]
        assert np.all(made.array == 0.5)
        assert made.values_source == "recipe: constant 0.5"

    def test_a_range_is_kept(self) -> None:
        made = make(MASK, values={"attention_mask": {"low": 5, "high": 8}})["attention_mask"]
        assert set(np.unique(made.array)) == {5, 6, 7}

    def test_a_file_is_fed_as_it_is_and_decides_the_shape(self, tmp_path: Path) -> None:
        array = np.arange(10, dtype=np.int64).reshape(1, 10)
        np.save(tmp_path / "ids.npy", array)
        made = make(IDS, MASK, values={"input_ids": {"file": str(tmp_path / "ids.npy")}})
        assert np.array_equal(made["input_ids"].array, array)
        assert made["input_ids"].shape_source == "recipe: inputs.values.input_ids.file"
        assert made["attention_mask"].array.shape == (1, 10)

    def test_a_file_of_another_type_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "ids.npy", np.zeros((1, 4), dtype=np.float32))
        with pytest.raises(InputError, match="has float32"):
            make(IDS, values={"input_ids": {"file": str(tmp_path / "ids.npy")}})

    def test_a_missing_or_damaged_file_is_named(self, tmp_path: Path) -> None:
        (tmp_path / "bad.npy").write_bytes(b"nothing")
        with pytest.raises(NotFoundError, match="file not found"):
            make(IDS, values={"input_ids": {"file": str(tmp_path / "none.npy")}})
        with pytest.raises(InputError, match="cannot be read"):
            make(IDS, values={"input_ids": {"file": str(tmp_path / "bad.npy")}})

    @pytest.mark.parametrize(
        "given",
        [
            {"constant": 300},
            {"constant": 1.5},
            {"constant": "text"},
            {"low": 3, "high": 3},
            {"low": 3},
            {"low": -1, "high": 5},
            {"constant": 1, "low": 1, "high": 2},
        ],
    )
    def test_values_that_do_not_fit_are_refused(self, given: dict[str, Any]) -> None:
        with pytest.raises(InputError):
            make(TensorSpec("x", "uint8", (4,)), values={"x": given})


class TestSeed:
    def test_the_same_seed_gives_the_same_bytes_whatever_stands_beside(self) -> None:
        alone = make(IMAGE, seed=7)["images"]
        beside = make(IDS, IMAGE, seed=7)["images"]
        assert alone.sha256 == beside.sha256
        assert make(IMAGE, seed=8)["images"].sha256 != alone.sha256

    def test_two_inputs_of_one_model_differ(self) -> None:
        made = make(TensorSpec("a", "float32", (1, 8)), TensorSpec("b", "float32", (1, 8)))
        assert made["a"].sha256 != made["b"].sha256

    def test_the_bytes_are_the_same_on_every_machine(self) -> None:
        made = make(TensorSpec("ids", "int64", (2, 4), below=1000, below_source="rows"), seed=3)["ids"]
        assert made.sha256 == "e2976f87e6c564ad72a652dc43fd12ef0405ed8c876ca1f3b81ca1d89269e1e4"
