# Every target sets up what it needs by itself and reuses it the next time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# What podgpu itself needs. The tools that check and test it are in the other lock, with all of these.
RUNS   := $(VENV)/.runs

# uv alone, to make locks and to publish.
UV     := $(VENV)/.uv
# A lock for each thing that only some targets need.
LOCKS  := tools/locks

# Only what a lock names, with its hash, and only wheels: building a package would fetch tools that no lock names.
HASHED  := --require-hashes --only-binary :all:
PIP     := $(BIN)/python -m pip install --quiet --disable-pip-version-check
INSTALL := $(BIN)/uv pip install --quiet --python $(BIN)/python

# Tests wait about as long as they compute, so there is one process more than there are cores. The tests of a file stay in
# one process because they share servers. Files keep their order because those that take longest come early.
PYTEST ?= -n $(shell expr $$(nproc) + 1) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help demo test steady mutants fuzz fit-check deep soak-demo months faults dark matrix check format docs figures proto bench bench-scale bench-page axe focus-validator shots test-axe test-steady stress soak gpu-wheels gpu-test lock clean dashboards image release test-release chart package kubernetes-tools test-kubernetes test-nvml test-nvidia test-opencost test-login test-solver test-parquet

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 24

$(RUNS): requirements.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) $(HASHED) -r requirements.lock
	@touch $@

$(UV): requirements-dev.lock
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@sed -n '/^uv==/,/# via/p' requirements-dev.lock > $(VENV)/uv.txt
	$(PIP) $(HASHED) -r $(VENV)/uv.txt
	@touch $@

$(READY): $(UV) pyproject.toml src/podgpu/__init__.py
	$(INSTALL) $(HASHED) -r requirements-dev.lock
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@ $(RUNS)

demo: $(RUNS) ## serve a simulated node on http://127.0.0.1:19400
	PYTHONPATH=src $(BIN)/python -m podgpu demo --web.listen-address=127.0.0.1:19400

test: $(READY) ## run all tests, or those that PYTEST="tests/views -q" names
	$(BIN)/python -m pytest $(PYTEST)

RUNS ?= 3
steady: $(READY) ## run the tests that TESTS names while their processes are stopped now and then: TESTS=tests/push RUNS=3
	@test -n "$(TESTS)" || { echo "make steady TESTS=tests/push" >&2; exit 2; }
	$(BIN)/python -m tests.steady --runs $(RUNS) $(if $(AT),--at $(AT)) $(TESTS) $(PYTEST)

mutants: $(READY) ## change the module that MODULE names in many ways, and print what its tests do not notice: MODULE=ledger/book.py
	@test -n "$(MODULE)" || { echo "make mutants MODULE=ledger/book.py" >&2; exit 2; }
	$(BIN)/python -m tools.mutants $(MODULE) $(if $(MOST),--most $(MOST)) $(if $(SEED),--seed $(SEED))

SECONDS_OF_FUZZ ?= 600
fuzz: $(READY) ## damage documents, store answers, recordings and files for ten minutes of processor time, and see what escapes
	$(BIN)/python -m tests.fuzz $(SECONDS_OF_FUZZ)

fit-check: $(READY) ## judge 400 made-up workloads as podgpu fit does, for about two minutes, and compare with what is right
	$(BIN)/python -m tests.insight.fit
	$(BIN)/python -m tests.insight.plan

deep: $(READY) ## try the property tests of the core with many more examples, for about a minute
	PODGPU_TEST_PROFILE=deep $(BIN)/python -m pytest -q -m hypothesis tests/ledger tests/agent tests/views tests/serve

soak-demo: $(READY) ## let Prometheus watch the demo for five minutes, second by second
	PODGPU_SOAK_SECONDS=300 $(BIN)/python -m pytest -q tests/e2e/test_documented.py

MONTHS ?= 200
months: $(READY) ## bill random months in a real Prometheus and VictoriaMetrics, and compare with what was true; about 15 minutes
	$(BIN)/python -m tests.e2e.months $(MONTHS)

faults: $(READY) ## read 1,000 agents of which 310 hang, refuse, talk nonsense or answer for another node
	PODGPU_TEST_FLEET=1000 $(BIN)/python -m pytest -q tests/cluster/test_loop.py

dark: $(READY) ## let 1,000 nodes go dark in every way, and compare what every surface says; needs chromium
	PODGPU_DARK_NODES=1000 $(BIN)/python -m pytest -q tests/agreement/test_dark.py

matrix: $(READY) ## break one thing after another at the start, while it runs, during a scrape and at the end of an agent
	PODGPU_TEST_MATRIX=all $(BIN)/python -m pytest -q -n 2 tests/faults

check: $(READY) ## lint, types, walls, generated docs, dashboards and chart, released names, shape
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m tools.walls
	$(BIN)/python -m tools.docs --check
	$(BIN)/python -m tools.figures --check
	$(BIN)/python -m tools.dashboards --check
	$(BIN)/python -m tools.chart --check
	$(BIN)/python -m tools.names
	$(BIN)/python -m tools.shape --figures

format: $(READY) ## format the sources
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## regenerate the generated docs
	$(BIN)/python -m tools.docs

figures: $(READY) ## recompute the figures that docs quote, and write them there
	$(BIN)/python -m tools.figures

dashboards: $(READY) ## regenerate the Grafana dashboards
	$(BIN)/python -m tools.dashboards

proto: $(READY) ## regenerate the kubelet's messages
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=src/podgpu/kube/_gen --pyi_out=src/podgpu/kube/_gen \
		proto/pods.proto
	$(BIN)/python -m grpc_tools.protoc -Iproto --python_out=tests/fakekubelet/_gen --pyi_out=tests/fakekubelet/_gen \
		proto/podresources.proto

package: $(READY) ## build the wheel and the source package into dist
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist

bench: $(READY) ## measure speed and size side by side
	$(BIN)/python -m bench

stress: $(READY) ## let thousands of bad clients loose on the server for some minutes, and count what good ones miss
	$(BIN)/python -m bench.stress

SECONDS ?= 3600
soak: $(READY) ## change a node in every way for SECONDS, an hour by default, and check each snapshot of its agent; needs root
	$(BIN)/python -m tests.soak $(SECONDS)

bench-scale: $(READY) ## measure what podgpu costs a Prometheus and the API server, for docs/scale.md; about three minutes
	$(BIN)/python -m bench.scale

bench-page: $(READY) ## measure the page with a thousand and 8,000 GPUs for ten minutes, and 500 event streams; needs chromium
	$(BIN)/python -m bench.web.page
	$(BIN)/python -m bench.web.fleet
	$(BIN)/python -m bench.web.streams

# Only the page's tests use it; nothing of it is shipped.
AXE := 4.14.0
AXE_SHA512 := f564d9c448ec67b6f5dd31fc24f99b576cfc0876e5f34ff6866dd73c41b826035d40b2bcd480515e64b11df3003a44aa41e4714ffd1dc0d0f3d863a6df3ce971
axe: build/axe/package/axe.min.js ## fetch axe-core, which judges the page's accessibility, from npm
build/axe/package/axe.min.js:
	mkdir -p build/axe
	cd build/axe && npm pack --silent axe-core@$(AXE) >/dev/null && echo "$(AXE_SHA512)  axe-core-$(AXE).tgz" | sha512sum --check --quiet \
		&& tar -xzf axe-core-$(AXE).tgz package/axe.min.js package/LICENSE

# Judges reports in the FinOps Foundation's form. It needs an older multimethod, so it gets an environment of its own.
# It and pandasql have no wheels, and are built with the tools of the lock.
focus-validator: build/focus-validator/.ready ## install the validator of FOCUS, which judges podgpu report -o focus
build/focus-validator/.ready: $(LOCKS)/focus-validator.lock | $(READY)
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python build/focus-validator
	sed -n '/^\(poetry-core\|setuptools\)==/,/# via/p' $< > build/focus-validator/builders.txt
	$(BIN)/uv pip install --quiet --python build/focus-validator/bin/python $(HASHED) -r build/focus-validator/builders.txt
	$(BIN)/uv pip install --quiet --python build/focus-validator/bin/python $(HASHED) \
		--no-binary focus-validator --no-binary pandasql --no-build-isolation -r $<
	@touch $@

test-steady: $(READY) ## look at the page for ten minutes while its agent is killed and its network is cut; needs chromium
	$(BIN)/python -m pytest -q -s -o faulthandler_timeout=0 -o python_files='check_*.py' tests/browser/check_steady.py

test-axe: $(READY) axe ## let axe-core judge every view, light and dark, on a phone and on a desktop; needs chromium
	$(BIN)/python -m pytest -q -o python_files='check_*.py' tests/browser/check_axe.py

shots: $(READY) ## take the pictures of the page for the docs; needs chromium
	$(BIN)/python -m tests.browser.shots docs/images

# The machine with the GPU needs PyTorch and podgpu's dependencies; make gpu-wheels brings the latter along.
GPU_PYTHON ?= 3.12
gpu-wheels: $(READY) ## unpack podgpu's dependencies for another machine's Python into build/gpu-wheels
	rm -rf build/wheels build/gpu-wheels
	mkdir -p build
	$(BIN)/python -m pip download --quiet --disable-pip-version-check --python-version $(GPU_PYTHON) $(HASHED) -d build/wheels -r $(LOCKS)/gpu.lock
	for wheel in build/wheels/*.whl; do $(BIN)/python -m zipfile -e $$wheel build/gpu-wheels; done

gpu-test: ## check podgpu against nvidia-smi, tenants against their work, MPS and pages, on a machine with a GPU
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/check.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/tenants.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/mps.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/pages.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/cost.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/paced.py
	PYTHONPATH=build/gpu-wheels $(PYTHON) tests/gpu/slowdown.py

# By the uv of the lock itself, with its hash.
COMPILE := $(BIN)/uv pip compile --quiet --no-header --universal --python-version 3.11 --generate-hashes
lock: $(UV) ## resolve the dependencies again, and write their hashes
	$(COMPILE) --extra otlp -o requirements.lock pyproject.toml
	$(COMPILE) --extra otlp --group dev --constraint requirements.lock -o requirements-dev.lock pyproject.toml
	$(COMPILE) --group gpu --constraint requirements.lock -o $(LOCKS)/gpu.lock
	for name in focus-validator ortools pyarrow; do $(COMPILE) --group $$name -o $(LOCKS)/$$name.lock || exit; done

clean: ## remove what the targets made
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache build dist

kubernetes-tools: ## build Kubernetes and etcd from their Go modules into ~/.cache/podgpu-kubernetes
	nice tests/kubernetes/build.sh

test-kubernetes: $(READY) ## install the chart and the manifests on a real API server and kubelet, with the image of make image
	$(BIN)/python -m tests.kubernetes $(BIN)/python -m pytest -q -o python_files='check_*.py' tests/kubernetes

test-nvml: $(READY) ## read another NVML library than our fake, and compare with what it plays: LIBRARY=PATH PROFILE=PATH
	PODGPU_TEST_NVML_LIBRARY="$(LIBRARY)" PODGPU_TEST_NVML_PROFILE="$(PROFILE)" \
		$(BIN)/python -m pytest -q -rs -o python_files='check_*.py' tests/sources/nvml/check_other_library.py

# RECORD=yes writes what the node answered to tests/recorded/nvidia; CHECKS="-k mps" chooses.
test-nvidia: $(READY) ## check shares beside NVIDIA's own device plugin and DRA driver on a real node: PLUGIN=PATH DRIVER=PATH
	$(BIN)/python -m tests.nvidia "$(PLUGIN)" "$(DRIVER)" $(if $(RECORD),--update) $(CHECKS)

build/ortools/.ready: $(LOCKS)/ortools.lock | $(READY)
	$(INSTALL) $(HASHED) --target build/ortools -r $<
	@touch $@

test-solver: $(READY) build/ortools/.ready ## compare the plans of podgpu fit with those of OR-Tools' CP-SAT
	PYTHONPATH=build/ortools:. $(BIN)/pytest -q tests/insight/plan/check_cp_sat.py

build/pyarrow/.ready: $(LOCKS)/pyarrow.lock | $(READY)
	$(INSTALL) $(HASHED) --target build/pyarrow -r $<
	@touch $@

test-parquet: $(READY) build/pyarrow/.ready ## compare podgpu report -o focus-parquet with -o focus, with pyarrow and victoria-metrics
	PYTHONPATH=build/pyarrow:. $(BIN)/pytest -q tests/e2e/check_parquet.py

test-opencost: $(READY) ## build OpenCost from its source, and compare its GPU costs with podgpu report; needs Go
	nice tests/e2e/opencost/build.sh
	PODGPU_OPENCOST=$(CURDIR)/build/opencost/opencost $(BIN)/python -m pytest -q tests/e2e/check_opencost.py

test-login: $(READY) ## build oauth2-proxy, and log in through it to a node's page; needs Go, openssl and chromium
	nice tests/login/build.sh
	PODGPU_OAUTH2_PROXY=$(CURDIR)/build/oauth2-proxy/oauth2-proxy $(BIN)/python -m pytest -q tests/login/check_login.py

# ARCH="amd64 arm64" makes an archive of each and one of both; without it, that of this machine.
image: $(READY) ## build the container image as an OCI archive in build/image; needs mmdebstrap
	$(BIN)/python -m tools.image build --twice $(if $(ARCH),--arch $(ARCH))

# IMAGE=REGISTRY/NAME and BASE=URL are where the image and the files will be.
release: $(READY) ## build and compare twice what a release of VERSION publishes, into dist; needs mmdebstrap
	@test -n "$(VERSION)" || { echo "make release VERSION=$$($(BIN)/podgpu --version | cut -d' ' -f2)" >&2; exit 2; }
	rm -rf dist
	$(BIN)/python -m tools.release $(VERSION) --twice $(if $(IMAGE),--image $(IMAGE)) $(if $(BASE),--base $(BASE))

test-release: release ## build a release, then install and start each of its files; needs root, runc, helm, qemu-user-static, actionlint
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/deploy/check_release.py

chart: $(READY) ## regenerate the chart's schema, the manifests and the table of privileges; needs helm
	$(BIN)/python -m tools.chart
