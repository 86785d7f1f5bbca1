"""What several layers say of the same cards. The XML is written by NVIDIA's schema, not recorded from a card."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pynvml
import pytest

from prony.instruments.device import nvidia_layers
from prony.instruments.device.gpu_layers import CAPABILITIES, add_trials, join_layers
from prony.instruments.device.nvidia import precisions
from prony.instruments.device.nvidia_layers import ask_nvidia_smi, ask_nvml, parse_smi
from prony.instruments.device.other_layers import UNTRIED, ask_amd, ask_intel, describe_amd, parse_xpu_smi
from prony.model.gpu_detection import DetectedGpu, GpuFields, LayerAnswer, ProductTrial

UUID = "GPU-9292ab31-0000-1111-2222-333344445555"
NEW = f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
  <driver_version>580.95.05</driver_version>
  <cuda_version>13.0</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:4F:00.0">
    <product_name>NVIDIA H200</product_name>
    <product_architecture>Hopper</product_architecture>
    <persistence_mode>Enabled</persistence_mode>
    <mig_mode><current_mig>Disabled</current_mig><pending_mig>Disabled</pending_mig></mig_mode>
    <mig_devices>None</mig_devices>
    <uuid>{UUID}</uuid>
    <gpu_virtualization_mode><virtualization_mode>Pass-Through</virtualization_mode></gpu_virtualization_mode>
    <pci>
      <pci_gpu_link_info>
        <pcie_gen><max_link_gen>5</max_link_gen><current_link_gen>5</current_link_gen></pcie_gen>
        <link_widths><max_link_width>16x</max_link_width><current_link_width>8x</current_link_width></link_widths>
      </pci_gpu_link_info>
    </pci>
    <fb_memory_usage><total>143771 MiB</total><reserved>589 MiB</reserved><used>4 MiB</used></fb_memory_usage>
    <compute_mode>Default</compute_mode>
    <ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
    <gpu_power_readings><current_power_limit>700.00 W</current_power_limit></gpu_power_readings>
    <max_clocks><sm_clock>1980 MHz</sm_clock></max_clocks>
  </gpu>
</nvidia_smi_log>"""
OLD = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v8.dtd">
<nvidia_smi_log>
  <driver_version>384.81</driver_version>
  <gpu id="00000000:01:00.0">
    <product_name>Tesla V100-SXM2-16GB</product_name>
    <uuid>GPU-old</uuid>
    <persistence_mode>Disabled</persistence_mode>
    <power_readings>
      <power_limit>300.00 W</power_limit>
      <enforced_power_limit>[N/A]</enforced_power_limit>
    </power_readings>
    <ecc_mode><current_ecc>N/A</current_ecc></ecc_mode>
    <compute_mode>Exclusive_Process</compute_mode>
  </gpu>
</nvidia_smi_log>"""

MIDDLE = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">
<nvidia_smi_log>
  <driver_version>470.82.01</driver_version>
  <cuda_version>11.4</cuda_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:07:00.0">
    <product_name>A100-SXM4-40GB</product_name>
    <product_brand>NVIDIA</product_brand>
    <persistence_mode>Enabled</persistence_mode>
    <mig_mode><current_mig>Enabled</current_mig><pending_mig>Enabled</pending_mig></mig_mode>
    <mig_devices><mig_device><index>0</index></mig_device><mig_device><index>1</index></mig_device></mig_devices>
    <uuid>GPU-middle</uuid>
    <gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
    <pci>
      <pci_gpu_link_info>
        <pcie_gen><max_link_gen>4</max_link_gen><current_link_gen>4</current_link_gen></pcie_gen>
        <link_widths><max_link_width>16x</max_link_width><current_link_width>16x</current_link_width></link_widths>
      </pci_gpu_link_info>
    </pci>
    <fb_memory_usage><total>40536 MiB</total><used>0 MiB</used><free>40536 MiB</free></fb_memory_usage>
    <compute_mode>Default</compute_mode>
    <ecc_mode><current_ecc>Enabled</current_ecc><pending_ecc>Enabled</pending_ecc></ecc_mode>
    <power_readings>
      <power_state>P0</power_state>
      <power_limit>400.00 W</power_limit>
      <enforced_power_limit>350.00 W</enforced_power_limit>
    </power_readings>
    <max_clocks><graphics_clock>1410 MHz</graphics_clock><sm_clock>1410 MHz</sm_clock></max_clocks>
  </gpu>
</nvidia_smi_log>"""


def answer(layer: str, *cards: GpuFields, about: GpuFields | None = None) -> LayerAnswer:
    return LayerAnswer(layer=layer, state="asked", cards=cards, about=about or {})


def only(*answers: LayerAnswer) -> DetectedGpu:
    (card,) = join_layers(answers).cards
    return card


def test_the_xml_between_the_oldest_and_the_newest_is_the_same_noun() -> None:
    (card,) = parse_smi(MIDDLE)
    assert card == {
        "name": "A100-SXM4-40GB", "uuid": "GPU-middle", "memory_mib": 40536, "max_clock_mhz": 1410,
        "power_limit_w": 350.0, "ecc": "on", "mig": "on", "mig_slices": 2, "persistence": "on",
        "compute_mode": "default", "link_generation": 4, "link_generation_max": 4, "link_width": 16,
        "link_width_max": 16, "driver": "470.82.01", "cuda": "11.4", "pci": "00000000:07:00.0",
    }  # fmt: skip
    assert card.keys() <= parse_smi(NEW)[0].keys() | {"mig_slices"}


def test_the_xml_is_read_by_its_newest_names() -> None:
    (card,) = parse_smi(NEW)
    assert card == {
        "name": "NVIDIA H200", "uuid": UUID, "architecture": "Hopper", "memory_mib": 143771, "max_clock_mhz": 1980,
        "power_limit_w": 700.0, "ecc": "on", "mig": "off", "persistence": "on", "compute_mode": "default",
        "link_generation": 5, "link_generation_max": 5, "link_width": 8, "link_width_max": 16,
        "virtualization": "Pass-Through", "driver": "580.95.05", "cuda": "13.0", "pci": "00000000:4F:00.0",
    }  # fmt: skip


def test_the_xml_of_old_drivers_is_read_too_and_what_it_does_not_know_is_left_out() -> None:
    (card,) = parse_smi(OLD)
    assert (card["power_limit_w"], card["compute_mode"], card["persistence"]) == (300.0, "exclusive process", "off")
    assert not {"ecc", "mig", "architecture", "cuda"} & card.keys()


def test_the_program_on_the_path_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "nvidia-smi"
    monkeypatch.setenv("PATH", str(tmp_path))
    assert (ask_nvidia_smi().state, ask_intel().state) == ("absent", "absent")
    (tmp_path / "answer").write_text(f"{NEW}\n")
    program.write_text(
        f'#!/bin/sh\n[ "$*" = "-q -x" ] && while IFS= read -r line; do echo "$line"; done < {tmp_path}/answer\n'
    )
    program.chmod(0o755)
    assert [card["name"] for card in ask_nvidia_smi().cards] == ["NVIDIA H200"]
    program.write_text(
        "#!/bin/sh\necho 'NVIDIA-SMI has failed because it could not communicate with the driver.'\nexit 9\n"
    )
    failed = ask_nvidia_smi()
    assert (failed.state, "could not communicate" in failed.note) == ("failed", True)
    program.write_text("#!/bin/sh\necho '<broken'\n")
    assert ask_nvidia_smi().state == "failed"


class Library:
    """As much of NVML as a card with MIG answers; what it does not know, the card does not offer."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("nvml"):
            return getattr(pynvml, name)
        answers: dict[str, Any] = {
            "nvmlDeviceGetName": b"NVIDIA H200", "nvmlDeviceGetUUID": UUID.encode(),
            "nvmlDeviceGetPciInfo": SimpleNamespace(busId=b"00000000:4F:00.0"),
            "nvmlDeviceGetCudaComputeCapability": (9, 0), "nvmlDeviceGetMigMode": (1, 1),
            "nvmlDeviceGetMemoryInfo": SimpleNamespace(total=143771 * 2**20), "nvmlDeviceGetEccMode": (1, 1),
            "nvmlDeviceGetMaxMigDeviceCount": 7, "nvmlDeviceGetComputeMode": 0,
            "nvmlDeviceGetMPSComputeRunningProcesses": [SimpleNamespace(pid=7)],
            "nvmlSystemGetDriverVersion": "580.95.05", "nvmlSystemGetCudaDriverVersion_v2": 13000,
        }  # fmt: skip

        def reply(*about: Any) -> Any:
            if name == "nvmlDeviceGetMigDeviceHandleByIndex" and about[1] < 2:
                return object()
            if name not in answers:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
            return answers[name]

        return reply


def test_slices_and_clients_of_mps_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvidia_layers, "management", Library)
    monkeypatch.setattr(nvidia_layers, "handles", lambda: [0])
    (card,) = ask_nvml().cards
    assert (card["name"], card["uuid"], card["pci"]) == ("NVIDIA H200", UUID, "00000000:4F:00.0")
    assert (card["mig"], card["mig_slices"], card["mps_clients"], card["ecc"]) == ("on", 2, 1, "on")
    assert (card["compute_capability"], card["cuda"], card["memory_mib"]) == ("9.0", "13.0", 143771)
    assert "persistence" not in card


def test_a_card_is_joined_by_its_uuid_whatever_the_order() -> None:
    nvml = answer("nvml", {"name": "A", "uuid": "GPU-1"}, {"name": "A", "uuid": "GPU-2"})
    torch = answer("torch", {"name": "A", "uuid": "gpu-2", "l2_mib": 60}, about={"runtime": "13.0"})
    first, second = join_layers([nvml, torch]).cards
    assert (first.layers, second.layers) == (("nvml",), ("nvml", "torch"))
    assert second.facts == {"name": "A", "uuid": "GPU-2", "l2_mib": 60}
    assert second.seen_by["uuid"] == {"nvml": "GPU-2", "torch": "gpu-2"}


def test_cards_without_a_uuid_are_joined_by_their_place_or_name() -> None:
    assert only(answer("nvml", {"name": "A", "pci": "0:1"}), answer("smi", {"name": "B", "pci": "0:1"})).layers == (
        "nvml",
        "smi",
    )
    both = join_layers([answer("x", {"name": "A"}, {"name": "A"}), answer("y", {"name": "A"}, {"name": "A"})])
    assert [card.layers for card in both.cards] == [("x", "y"), ("x", "y")]


def test_what_differs_beyond_its_tolerance_is_a_disagreement() -> None:
    nvml: GpuFields = {"name": "A", "uuid": "1", "memory_mib": 143771, "link_width": 16, "multiprocessors": 132}
    smi: GpuFields = {"name": "A", "uuid": "1", "memory_mib": 140000, "link_width": 8}
    card = only(answer("nvml", nvml), answer("nvidia-smi", smi))
    assert card.disagreements == ()
    slim: GpuFields = {"name": "A", "uuid": "1", "memory_mib": 70000, "multiprocessors": 66}
    told = only(answer("nvml", nvml), answer("torch", slim, about={"runtime": "13.0"})).disagreements
    assert told == (
        "multiprocessors: nvml says 132, torch says 66; a part of a GPU (MIG) or a limit of MPS can cause this",
        "memory_mib: nvml says 143771, torch says 70000",
    )


@pytest.mark.parametrize(
    ("seen", "words"),
    [
        (answer("torch", about={"runtime": ""}), "prony engines add torch"),
        (answer("torch", about={"runtime": "13.0", "visible_devices": ""}), "CUDA_VISIBLE_DEVICES is ''"),
        (answer("torch", about={"runtime": "13.1"}), "the driver is for CUDA 13.0, but the build is for CUDA 13.1"),
        (answer("torch", about={"runtime": "12.8"}), "unknown"),
        (LayerAnswer(layer="torch", state="absent", note="torch is not installed"), "torch is not installed"),
    ],
)
def test_a_card_that_an_engine_does_not_see_says_why(seen: LayerAnswer, words: str) -> None:
    (note,) = only(answer("nvml", {"name": "A", "uuid": "1", "cuda": "13.0"}), seen).notes
    assert words in note


@pytest.mark.parametrize(
    ("built", "notes"),
    [("sm_80 sm_90", 0), ("sm_80 sm_86", 1), ("sm_80 compute_80", 0), ("", 0)],
)
def test_a_build_without_code_for_the_card_is_told(built: str, notes: int) -> None:
    about: GpuFields = {"runtime": "13.0", "built_for": built}
    card: GpuFields = {"name": "A", "uuid": "1", "compute_capability": "9.0"}
    assert len(only(answer("torch", card, about=about)).notes) == notes


@pytest.mark.parametrize(
    ("capability", "name", "generation", "has", "lacks"),
    [
        ("6.1", "Tesla P40", 0, set(), {"fp16"}),
        ("7.5", "Tesla T4", 2, {"fp16", "int4"}, {"bf16"}),
        ("7.5", "NVIDIA GeForce GTX 1650", 0, set(), {"fp16"}),
        ("8.0", "NVIDIA A100", 3, {"fp64", "tf32"}, {"fp8"}),
        ("8.6", "NVIDIA A10", 3, {"tf32"}, {"fp64"}),
        ("8.9", "NVIDIA L4", 4, {"fp8"}, {"fp4", "fp64"}),
        ("9.0", "NVIDIA H200", 4, {"fp8", "fp64"}, {"int4"}),
        ("12.0", "NVIDIA GeForce RTX 5090", 5, {"fp4", "fp6"}, {"fp64"}),
    ],
)
def test_tensor_cores_follow_the_compute_capability(
    capability: str, name: str, generation: int, has: set[str], lacks: set[str]
) -> None:
    card = only(answer("nvml", {"name": name, "compute_capability": capability}))
    assert card.tensor_generation == generation
    assert has <= set(card.tensor_formats)
    assert not lacks & set(card.tensor_formats)
    assert card.facts["architecture"]


# Of published cards: architecture, generation of tensor cores, and what these multiply.
CARDS: dict[str, tuple[str, str, int, str]] = {
    "Tesla P100": ("6.0", "Pascal", 0, ""),
    "Tesla P40": ("6.1", "Pascal", 0, ""),
    "NVIDIA GeForce GTX 1080 Ti": ("6.1", "Pascal", 0, ""),
    "Jetson TX2": ("6.2", "Pascal", 0, ""),
    "Tesla V100-SXM2-16GB": ("7.0", "Volta", 1, "fp16"),
    "Jetson Xavier": ("7.2", "Volta", 1, "fp16 int8"),
    "Tesla T4": ("7.5", "Turing", 2, "fp16 int4 int8"),
    "NVIDIA GeForce RTX 2080 Ti": ("7.5", "Turing", 2, "fp16 int4 int8"),
    "NVIDIA GeForce GTX 1660": ("7.5", "Turing", 0, ""),
    "NVIDIA T1000": ("7.5", "Turing", 0, ""),
    "NVIDIA GeForce MX450": ("7.5", "Turing", 0, ""),
    "NVIDIA A100-SXM4-80GB": ("8.0", "Ampere", 3, "bf16 fp16 fp64 int4 int8 tf32"),
    "NVIDIA A30": ("8.0", "Ampere", 3, "bf16 fp16 fp64 int4 int8 tf32"),
    "NVIDIA A10": ("8.6", "Ampere", 3, "bf16 fp16 int4 int8 tf32"),
    "NVIDIA RTX A6000": ("8.6", "Ampere", 3, "bf16 fp16 int4 int8 tf32"),
    "NVIDIA GeForce RTX 3090": ("8.6", "Ampere", 3, "bf16 fp16 int4 int8 tf32"),
    "Jetson AGX Orin": ("8.7", "Ampere", 3, "bf16 fp16 int4 int8 tf32"),
    "NVIDIA L4": ("8.9", "Ada Lovelace", 4, "bf16 fp16 fp8 int4 int8 tf32"),
    "NVIDIA L40S": ("8.9", "Ada Lovelace", 4, "bf16 fp16 fp8 int4 int8 tf32"),
    "NVIDIA GeForce RTX 4090": ("8.9", "Ada Lovelace", 4, "bf16 fp16 fp8 int4 int8 tf32"),
    "NVIDIA H100 80GB HBM3": ("9.0", "Hopper", 4, "bf16 fp16 fp64 fp8 int8 tf32"),
    "NVIDIA H200": ("9.0", "Hopper", 4, "bf16 fp16 fp64 fp8 int8 tf32"),
    "NVIDIA B200": ("10.0", "Blackwell", 5, "bf16 fp16 fp4 fp6 fp64 fp8 int8 tf32"),
    "NVIDIA B300": ("10.3", "Blackwell", 5, "bf16 fp16 fp4 fp6 fp64 fp8 int8 tf32"),
    "NVIDIA Thor": ("11.0", "Blackwell", 5, "bf16 fp16 fp4 fp6 fp64 fp8 int8 tf32"),
    "NVIDIA GeForce RTX 5090": ("12.0", "Blackwell", 5, "bf16 fp16 fp4 fp6 fp8 int8 tf32"),
    "NVIDIA GB10": ("12.1", "Blackwell", 5, "bf16 fp16 fp4 fp6 fp8 int8 tf32"),
}


@pytest.mark.parametrize("name", CARDS)
def test_each_published_card_is_told_exactly(name: str) -> None:
    capability, architecture, generation, formats = CARDS[name]
    card = only(answer("nvml", {"name": name, "compute_capability": capability}))
    assert card.facts["architecture"] == architecture
    assert (card.tensor_generation, card.tensor_formats) == (generation, tuple(formats.split()))


def test_every_capability_of_the_table_has_a_card_to_be_held_against() -> None:
    assert len(CARDS) >= 25
    assert {capability for capability, *_ in CARDS.values()} == CAPABILITIES.keys()


def test_what_tensor_cores_multiply_the_card_computes_in() -> None:
    for text, (_, _, formats) in CAPABILITIES.items():
        major, minor = map(int, text.split("."))
        assert set(formats) <= set(precisions((major, minor))), text


def test_an_unknown_capability_has_no_claim() -> None:
    card = only(answer("nvml", {"name": "N", "compute_capability": "99.0"}))
    assert (card.tensor_generation, card.tensor_formats) == (None, ())


def test_products_are_of_the_card_that_computed_them() -> None:
    detection = join_layers([answer("torch", {"name": "A", "uuid": "1"}, {"name": "A", "uuid": "2"})])
    trial = ProductTrial(format="fp8", worked=False, text="too old")
    found = add_trials(detection, "torch", {"2": (trial,), "cpu": (trial, trial)})
    assert [card.trials for card in found.cards] == [(), (trial,)]
    assert len(found.cpu_trials) == 2


class AmdSmi:
    """As its documentation describes it; one call fails, as they do."""

    class AmdSmiException(Exception):  # noqa: N818 - the vendor's word
        """An answer that is none."""

    def __init__(self, *, is_there: bool = True) -> None:
        self.is_there = is_there

    def amdsmi_init(self) -> None:
        if not self.is_there:
            raise self.AmdSmiException("no driver")

    def amdsmi_shut_down(self) -> None:
        return None

    def amdsmi_get_processor_handles(self) -> list[int]:
        return [0]

    def amdsmi_get_gpu_asic_info(self, _: int) -> dict[str, Any]:
        return {"market_name": "AMD Instinct MI300X", "target_graphics_version": "gfx942", "num_compute_units": 304}

    def amdsmi_get_gpu_vram_info(self, _: int) -> dict[str, Any]:
        return {"vram_size": 196592, "vram_bit_width": "N/A"}

    def amdsmi_get_power_cap_info(self, _: int) -> dict[str, Any]:
        return {"power_cap": 750_000_000}

    def amdsmi_get_gpu_device_bdf(self, _: int) -> str:
        raise self.AmdSmiException("for no reason")


def test_an_amd_card_is_read_as_documented_and_says_that_nobody_tried() -> None:
    found = describe_amd(AmdSmi())
    assert found.note == UNTRIED
    assert found.cards == (
        {
            "name": "AMD Instinct MI300X", "vendor": "amd", "compute_capability": "gfx942", "multiprocessors": 304,
            "memory_mib": 196592, "power_limit_w": 750.0,
        },
    )  # fmt: skip
    assert describe_amd(AmdSmi(is_there=False)).state == "failed"
    assert ask_amd().state in ("absent", "failed", "asked")


def test_an_intel_card_is_read_as_documented() -> None:
    text = '{"device_list": [{"device_id": 0, "device_name": "Intel Max 1550", "pci_bdf_address": "0000:4d:00.0"}]}'
    assert parse_xpu_smi(text) == ({"name": "Intel Max 1550", "vendor": "intel", "pci": "0000:4d:00.0"},)
