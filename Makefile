# make demo, make test and make install do all the set-up; `make help` lists everything.
# Variables are given on the command line: make install GPU=cuda PREFIX=/opt/localctx

PYTHON      ?= python3
PREFIX      ?= .venv
GPU         ?=
CPU         ?=
MODEL       ?=
LITE        ?=
CMAKE_ARGS  ?=
WHEEL_DIR   ?=
LLAMA_WHEEL ?=
PYTEST_ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help check demo install model test test-deps lint format native-test pytest proof wheel-test clean
.NOTPARALLEL:
.DELETE_ON_ERROR:
export CMAKE_ARGS
export PIP_DISABLE_PIP_VERSION_CHECK := 1

BIN     := $(abspath $(PREFIX))/bin
PIP     := $(BIN)/python -m pip
CMAKE   := $(or $(shell command -v cmake 2>/dev/null),$(BIN)/cmake)
DEMO    := docs/samples/state-of-the-union.pdf
SOURCES := pyproject.toml $(shell find localctx cli models native -type f -not -name '*.pyc' 2>/dev/null)
LLAMA   := native/llama_wheel.py install $(if $(GPU),--gpu $(GPU)) $(if $(CPU),--cpu $(CPU)) $(if $(WHEEL_DIR),--wheel-dir "$(WHEEL_DIR)") \
           $(if $(LLAMA_WHEEL),--wheel "$(LLAMA_WHEEL)")

AS_WHEEL := $(abspath $(PREFIX))/.localctx-wheel
EDITABLE := $(abspath $(PREFIX))/.localctx-editable

define HELP
make demo          set up .venv and summarise a sample PDF with the embedded model
make test          set up everything for development and run every check
make install       install for use into PREFIX, with llama.cpp built for GPU, and the embedded model
make model         fetch the embedded model (98 MB) and the embedder (46 MB)
make lint          ruff, mypy --strict             make format       ruff format and safe fixes
make native-test   the C++ core's tests            make pytest       the Python tests
make proof         tests that take many minutes
make wheel-test    types and fast tests against the installed wheel, from another folder
make clean         remove build outputs and caches; .venv, models and wheels stay

PYTHON=python3     the Python to use, 3.11 or newer
PREFIX=.venv       the virtual environment to install into; made when it is not there
GPU=cpu            llama.cpp's backend, from the table below; not given: what is installed is kept
CPU=all            CPU code for every generation of processors, chosen at run time; twice the compile steps
CMAKE_ARGS=        more CMake arguments for llama.cpp; they win over those of the table
WHEEL_DIR=         folder of built llama.cpp wheels, default localctx/wheels in the user's cache folder
LLAMA_WHEEL=       a ready-made llama-cpp-python wheel to use instead of building one
MODEL=FILE         take the embedded model from this file instead of fetching it; MODEL=off: no models now
LITE=1             leave out the embedder (46 MB): passages are then found by words alone
PYTEST_ARGS=       more arguments for pytest, for example -m "not slow"
pip's own variables (PIP_INDEX_URL, PIP_NO_INDEX, PIP_FIND_LINKS, ...) are honoured: docs/install.md

endef
export HELP

help:
	@printf '%s\n' "$$HELP"
	@$(PYTHON) native/llama_wheel.py table

# One line says all that has to be installed from the system, whatever part of it is missing.
check:
	@missing=; \
	command -v $(PYTHON) >/dev/null 2>&1 || missing="$$missing $(PYTHON)"; \
	if [ -z "$$missing" ]; then \
	  $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "localctx needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) -V 2>&1). Name another: make PYTHON=python3.11" >&2; \
	    exit 1; }; \
	  $(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    || missing="$$missing venv"; \
	  $(PYTHON) -c 'import os, sysconfig as s, sys; sys.exit(not os.path.exists(os.path.join(s.get_path("include"), "Python.h")))' \
	    || missing="$$missing Python.h"; \
	fi; \
	command -v $${CXX:-g++} >/dev/null 2>&1 || missing="$$missing $${CXX:-g++}"; \
	if [ -n "$$missing" ]; then \
	  echo "missing:$$missing" >&2; \
	  echo "apt install python3-venv python3-dev g++ make" >&2; \
	  exit 1; \
	fi

$(BIN)/python: | check
	$(PYTHON) -m venv "$(PREFIX)"

# llama.cpp comes first: pip would otherwise build it from source with its own cache and flags.
$(AS_WHEEL): $(SOURCES) | $(BIN)/python
	@echo "building the C++ core and installing localctx into $(PREFIX): a minute or two, without a word"
	$(PIP) install --quiet "$(CURDIR)"
	@rm -f $(PREFIX)/.localctx-*
	@touch $@

$(EDITABLE): pyproject.toml $(wildcard native/CMakeLists.txt native/*/*.cpp native/*/*.h) | $(BIN)/python
	@echo "building the C++ core and installing what development needs into $(PREFIX): some minutes, without a word"
	$(PIP) install --quiet --editable "$(CURDIR)[test,dev]"
	@test -x "$(CMAKE)" || $(PIP) install --quiet cmake
	@rm -f $(PREFIX)/.localctx-*
	@touch $@

install: check $(BIN)/python
	$(BIN)/python $(LLAMA)
	@$(MAKE) --no-print-directory $(AS_WHEEL)
	@$(MAKE) --no-print-directory model
	@echo "installed: $(BIN)/localctx --help"

# A file that is not the published one is found out by its hash, which pull checks.
model:
ifeq ($(MODEL),off)
	@echo "no models were fetched; later: localctx models pull smollm2-135m"
else
	@$(if $(MODEL),folder="$$($(BIN)/python -P -c 'from localctx.registry import models_dir; print(models_dir())')" && \
	  mkdir -p "$$folder" && cp "$(MODEL)" "$$folder/smollm2-135m.gguf",:)
	@$(BIN)/localctx models pull smollm2-135m
	@$(if $(LITE),:,$(BIN)/localctx models pull all-minilm-l6-v2)
endif

demo:
	@$(MAKE) --no-print-directory install LITE=1
	$(BIN)/localctx summarize $(DEMO) --length short

test-deps: check $(BIN)/python
	$(BIN)/python $(LLAMA)
	@$(MAKE) --no-print-directory $(EDITABLE)
	@$(MAKE) --no-print-directory model

test: test-deps
	@$(MAKE) --no-print-directory lint native-test pytest wheel-test

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python -m mypy --strict localctx cli native/llama_wheel.py

format:
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

native-test:
	$(CMAKE) -S native -B build/native-tests -DLOCALCTX_BUILD_MODULE=OFF -DLOCALCTX_BUILD_TESTS=ON
	$(CMAKE) --build build/native-tests --parallel 2
	$(dir $(CMAKE))ctest --test-dir build/native-tests --output-on-failure

# Two processes, on any machine: tests load models, and each of them evaluates with several threads.
SIDE_BY_SIDE := -n 2
pytest:
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "not proof" $(PYTEST_ARGS)

proof:
	$(BIN)/python -m pytest -m proof $(PYTEST_ARGS)

# What users get: the wheel in a clean environment, nothing of the source tree importable. Tests that load the
# model or take more than five seconds ran above against the same code and are left out here.
AWAY := build/wheel-test
wheel-test: check $(BIN)/python
	rm -rf $(AWAY)
	mkdir -p $(AWAY)/elsewhere
	$(PIP) wheel --quiet --no-deps --wheel-dir $(AWAY)/dist .
	$(PYTHON) -m venv $(AWAY)/venv
	$(AWAY)/venv/bin/python $(LLAMA)
	$(AWAY)/venv/bin/python -m pip install --quiet "$$(ls $(CURDIR)/$(AWAY)/dist/localctx-*.whl)[test,dev]"
	cd $(AWAY)/elsewhere && ../venv/bin/python -m mypy --config-file "$(CURDIR)/pyproject.toml" --strict -p localctx
	cd $(AWAY)/elsewhere && PYTHONSAFEPATH=1 ../venv/bin/python -m pytest $(SIDE_BY_SIDE) -c "$(CURDIR)/pyproject.toml" \
	  --rootdir "$(CURDIR)/tests" -p no:cacheprovider -m "not model and not slow and not proof" "$(CURDIR)/tests"

clean:
	rm -rf build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find localctx cli models native tests docs -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "kept: $(PREFIX), the models and the llama.cpp wheels"
