# Every target builds .venv on a fresh machine by itself; when pyproject.toml did not change, that takes no time.
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help install test test-all check format demo clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

install: $(VENV)/.installed  ## build .venv (torch, mmengine, mmcv, mmdet, mmseg, timm)

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "lvit-dense needs Python 3.10 or newer; call make PYTHON=python3.11"; exit 1; }
	test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	touch $@

test: install  ## the test suite (a few minutes on two cores)
	$(RUN) -m pytest

test-all: install  ## with the slow tests too
	$(RUN) -m pytest -m 'slow or not slow'

check: install  ## format, lint, types, and that the committed configs are what the generator writes
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .
	$(RUN) -m mypy
	$(RUN) tools/write_configs.py --check

format: install  ## format and fix what ruff can
	$(RUN) -m ruff format .
	$(RUN) -m ruff check --fix .

demo: install  ## the whole chain on generated pictures: teacher, transfer, distillation, Mask R-CNN, UperNet, a small Table D
	$(RUN) tools/demo.py

clean:  ## remove what runs wrote (work_dirs, data), never .venv
	rm -rf work_dirs data
