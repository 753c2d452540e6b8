# spanlab: `make run` starts the app, `make test` runs every test; each does its own set-up.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
FOR_TESTS := .venv/.ready_for_tests
FOR_TORCH := .venv/.ready_for_torch
PEERS := .venv/peers
FOR_PEERS := $(PEERS)/.ready
LABEL_STUDIO := .venv/label-studio
FOR_LABEL_STUDIO := $(LABEL_STUDIO)/.ready
FOR_MODEL := .venv/model/.ready
PYTHON_VERSION := -c 'import sys; print(*sys.version_info[:3])'
PYTHONS ?= $(or $(wildcard $(HOME)/.pyenv/versions/3.1[1-9].*/bin/python3),$(PYTHON))
# Python compiles what is imported, a fourth of it.
PIP_INSTALL := $(BIN)/pip install --disable-pip-version-check --no-compile --require-hashes
INSTALL := $(PIP_INSTALL) --quiet
COMPILE := uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes \
  --no-emit-index-url --no-emit-find-links --no-header --no-annotate
EXTRAS := $(addprefix --extra ,api averitec login mcp otel postgres train web)

.PHONY: run test quick mutate new-detector release test-torch test-peers test-model test-pythons test-versions without check bench guide pictures lock clean

run: $(READY)  ## import and annotate the samples once, then serve the app
	@$(BIN)/spanlab demo $(ARGS)

test: $(FOR_TESTS)  ## all tests, on SQLite and PostgreSQL and in a real Chromium
	sh tests/system_packages.sh
	$(BIN)/pytest -n 4 $(ARGS)  # more than cores: many of them wait
	@[ -e $(FOR_TORCH) ] || echo "not run: tests of checkpoints in PyTorch (make test-torch installs it, gigabytes)"

# All but tests/full and tests/lint; of what runs on either database, SQLite. A test of it that takes longer than a
# second, or two where a worker imports much for it, fails.
quick: $(FOR_TESTS)  ## the fast tier, in two minutes: every room, no browser, killed process or PostgreSQL
	$(BIN)/pytest -n 2 --ignore tests/full --ignore tests/lint -k "not postgresql" --most-seconds 2 $(ARGS)

# Apart, as it brings a pytest of its own.
mutate: $(FOR_TESTS)  ## changes by machine that no test notices, FILES="spanlab/measure/powered.py …", else what differs from main
	@[ -e .venv/mutate ] || $(BIN)/pip install --quiet --disable-pip-version-check --target .venv/mutate "mutmut==3.8.1"
	$(BIN)/python tests/support/mutate.py $(FILES)

# Apart, as spaCy imports torch wherever it is installed: a second more for every process.
test-torch: $(FOR_TORCH)  ## tests of checkpoints in PyTorch
	$(BIN)/pytest tests/full/systems/*/test_trained_*.py $(ARGS)

# By uv, as pip tries versions of so many packages for a quarter of an hour. Tests of the rest share
# neither fixtures nor packages with these, and others' warnings are no faults of ours.
test-peers: $(FOR_PEERS) $(FOR_LABEL_STUDIO)  ## tests with the programs that people use spanlab with (installs them: 3 GB)
	$(PEERS)/bin/python -m pytest --confcutdir tests/peers --override-ini filterwarnings= tests/peers $(ARGS)

# A file of weights is served by llama.cpp, which pip builds once: ten minutes on two cores.
test-model: $(FOR_TESTS)  ## the detectors on a real model, MODEL=weights.gguf or MODEL=http://…/v1
	@[ -n "$(MODEL)" ] || { echo "name a model: make test-model MODEL=weights.gguf"; exit 2; }
	@case "$(MODEL)" in http*) ;; *) [ -e $(FOR_MODEL) ] || { $(PYTHON) -m venv .venv/model && \
	  .venv/model/bin/pip install --quiet "llama-cpp-python[server]==0.3.36" && touch $(FOR_MODEL); } ;; esac
	$(BIN)/pytest --confcutdir tests/real_model tests/real_model --model "$(MODEL)" $(ARGS)

# The bounds of pyproject.toml hold: with the oldest versions that it allows, and with the newest.
test-versions: $(FOR_TESTS)  ## the fast tier on other versions than the pinned ones: RESOLUTION=lowest-direct or highest
	@$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv venv --quiet --clear --python $(BIN)/python .venv/versions
	$(BIN)/uv pip install --quiet --python .venv/versions --resolution $(RESOLUTION) \
	  --editable '.[api,averitec,dev,encoder,login,mcp,otel,postgres,train,web]'
	.venv/versions/bin/python -m pytest -n 2 --ignore tests/full --ignore tests/lint --override-ini filterwarnings= \
	  -k "not postgresql and not what_the_libraries_know" $(ARGS)

# Each gets what the wheel requires from the registry: half a minute of a processor, some 800 MB.
test-pythons: $(FOR_TESTS)  ## the wheel on every Python that pyenv has, or: PYTHONS="/usr/bin/python3.12 …"
	@for python in $(PYTHONS); do echo "the wheel on $$python"; \
	  SPANLAB_TEST_PYTHON=$$python $(BIN)/pytest tests/full/test_wheel.py $(ARGS) || exit 1; done

check: $(FOR_TESTS)  ## formatting, lint, types, import contracts, unsafe calls, names, texts, vulnerabilities
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest tests/lint
	@sh tests/audit.sh $(BIN)/pip-audit

guide: $(FOR_TESTS)  ## the guide's generated parts anew, and the guide as a static site in build/guide
	$(BIN)/python tests/support/guide_parts.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --config-file tests/site/mkdocs.yml

pictures: $(FOR_TESTS)  ## all pictures of README and guide anew, light and dark
	sh tests/system_packages.sh
	SPANLAB_PICTURES=$(CURDIR)/spanlab/guide/pictures \
	  $(BIN)/pytest tests/full/browser/test_check.py tests/full/browser/test_pictures.py \
	  tests/full/browser/test_optimise.py tests/full/browser/test_campaign_pictures.py

bench: $(FOR_TESTS)  ## print every figure that README and guide name
	@! [ -e $(FOR_TORCH) ] || { echo "PyTorch is installed here, which spaCy loads: sizes would be its; use another clone"; exit 2; }
	sh tests/system_packages.sh
	for file in tests/benchmarks/bench_*.py; do $(BIN)/python $$file || exit 1; done

# A system is its folder in spanlab/systems, tests/systems and tests/full/systems, and nothing else.
without: $(FOR_TESTS)  ## the fast tier and the lints in a copy without a system: SYSTEM=papelo
	$(BIN)/python tests/support/without.py "$(SYSTEM)" $(ARGS)

new-detector: $(FOR_TESTS)  ## a detector with options, test and page of the guide, to change: NAME=odd-words
	@$(BIN)/python tests/support/new_detector.py "$(NAME)"

# What the app runs on, and, with the extras that `make run` does not install, what tests run on.
lock: $(READY)  ## pin all dependencies anew, with hashes and without addresses
	$(BIN)/pip install --quiet uv
	$(BIN)/$(COMPILE) pyproject.toml $(EXTRAS) --output-file requirements.lock
	$(BIN)/$(COMPILE) pyproject.toml $(EXTRAS) --extra dev --extra encoder \
	  --constraint requirements.lock --output-file tests/requirements.lock

# Whatever fails leaves no tag: what was written so far is seen by `git diff`.
release: $(FOR_TESTS)  ## the version in its files, pins, guide, all tests, pictures, sdist and wheel, tag: VERSION=1.2.3
	$(BIN)/python tests/support/release.py "$(VERSION)"
	for step in lock guide check test test-peers test-pythons pictures; do $(MAKE) $$step || exit 1; done
	$(BIN)/uv build --out-dir dist
	git commit --all --message "Release $(VERSION)"
	git tag "v$(VERSION)"

clean:  ## remove the environment; annotations in .spanlab stay
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis *.egg-info

# Where another Python is asked for than .venv has, it is made anew.
ifneq ($(origin PYTHON),file)
ifneq ($(shell $(PYTHON) $(PYTHON_VERSION)),$(shell $(BIN)/python $(PYTHON_VERSION) 2>/dev/null))
CLEAR := --clear
.PHONY: $(READY)
endif
endif

# A .venv that is half made has no .ready and is made again.
$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "spanlab needs Python 3.11 or newer with venv (Debian: apt-get install python3-venv);"; \
	  echo "another interpreter is chosen with: make $(MAKECMDGOALS) PYTHON=/path/to/python3"; exit 1; }
	@echo "making the environment in .venv (a minute or two, once)"
	@$(PYTHON) -m venv $(CLEAR) .venv
	@{ $(PIP_INSTALL) -r requirements.lock || echo FAILED; } | { n=0; while read -r word line; do case $$word in \
	  Collecting) n=$$((n + 1)); printf '\r%d of at most %d packages fetched' $$n $$(grep -c == requirements.lock);; \
	  Installing) printf '\ninstalling them\n';; FAILED) exit 1;; esac; done; }
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $(READY)

$(FOR_TESTS): $(READY) tests/requirements.lock
	@$(INSTALL) -r tests/requirements.lock
	@touch $(FOR_TESTS)

$(FOR_PEERS): $(READY) tests/peers/requirements.txt
	@$(PYTHON) -m venv $(PEERS)
	@$(PEERS)/bin/pip install --quiet --disable-pip-version-check uv
	@$(PEERS)/bin/uv pip install --quiet --python $(PEERS)/bin/python --editable '.[api,login,otel]' \
	  --requirements tests/peers/requirements.txt
	@# Its prompts alone are read; what its detectors need is gigabytes of PyTorch.
	@$(PEERS)/bin/uv pip install --quiet --python $(PEERS)/bin/python --no-deps 'lettucedetect>=0.2.3'
	@touch $(FOR_PEERS)

# Apart, as it pins other versions of what spanlab needs.
$(FOR_LABEL_STUDIO): $(FOR_PEERS)
	@$(PEERS)/bin/uv venv --quiet --clear --python $(PYTHON) $(LABEL_STUDIO)
	@$(PEERS)/bin/uv pip install --quiet --python $(LABEL_STUDIO)/bin/python 'label-studio>=1.23'
	@touch $(FOR_LABEL_STUDIO)

$(FOR_TORCH): $(FOR_TESTS) Makefile
	@$(BIN)/pip install --quiet --disable-pip-version-check torch==2.13.0 transformers==5.23.0
	@touch $(FOR_TORCH)
