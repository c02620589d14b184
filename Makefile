# Both Ways: every command a person needs. `make` alone lists them.
PORT ?= 8501
ADDRESS ?= 127.0.0.1
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= ../shared/data
# Byte code is made of what is imported, when it first is: of all that is installed it takes over a minute more.
PIP := --quiet --disable-pip-version-check --no-compile
# Rows of each task that `make evaluate` reads, evenly spaced (BLiMP: pairs of each rule); empty for all.
LIMIT ?= 100

.PHONY: help run test test-full test-webkit test-firefox test-cluster evaluate bench screenshots audit cluster clean

help:
	@echo "make run          start the explorer on http://$(ADDRESS):$(PORT)"
	@echo "make test         all tests that fit in 20 minutes on two cores"
	@echo "make test-full    full counts: load, fuzzing, training"
	@echo "make test-webkit  every view in Safari's engine (Debian's webkit2gtk-driver)"
	@echo "make test-firefox every view in Firefox (the system's, or Debian's firefox-esr)"
	@echo "make test-cluster the Ray Serve engine, a replica killed under load"
	@echo "make evaluate     scores on $(or $(LIMIT),all) rows of each task (DATA=folder; LIMIT=1000; LIMIT= for all, over an hour)"
	@echo "make bench        every benchmark in turn"
	@echo "make screenshots  the pictures of README.md and docs/"
	@echo "make audit        known vulnerabilities in the pinned packages"
	@echo "make cluster      a local Ray Serve cluster behind the same pages"
	@echo "make clean        take the environment away again"

$(VENV)/made: requirements.txt
	@test -x $(BIN)/python || $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
		"$(PYTHON) is Python %d.%d; this needs 3.11 or newer: make ... PYTHON=python3.11" % sys.version_info[:2])'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP) -r requirements.txt
	touch $@

$(VENV)/made-test: $(VENV)/made requirements-test.txt
	$(BIN)/python -m pip install $(PIP) -r requirements-test.txt
	touch $@

$(VENV)/made-cluster: $(VENV)/made-test requirements-cluster.txt
	$(BIN)/python -m pip install $(PIP) -r requirements-cluster.txt
	touch $@

run: $(VENV)/made
	$(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS) --server.headless true

test: $(VENV)/made-test
	sh scripts/browser.sh $(BIN)/python
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 --dist loadfile

test-full: $(VENV)/made-test
	sh scripts/browser.sh $(BIN)/python
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -m "not cluster and not webkit and not firefox"

test-webkit: $(VENV)/made-test
	sh scripts/webkit.sh
	xvfb-run -a -s "-screen 0 1600x1100x24" $(BIN)/python -m pytest -q -m webkit tests/engines

test-firefox: $(VENV)/made-test
	sh scripts/firefox.sh
	$(BIN)/python -m pytest -q -m firefox tests/engines

test-cluster: $(VENV)/made-cluster
	$(BIN)/python -m pytest -q -m cluster tests/serving

evaluate: $(VENV)/made
	$(BIN)/python -m bert_core evaluate --all --data $(DATA) $(if $(LIMIT),--limit $(LIMIT)) --json

bench: $(VENV)/made-cluster
	sh scripts/browser.sh $(BIN)/python
	$(BIN)/python -m bench --all

screenshots: $(VENV)/made-test
	sh scripts/browser.sh $(BIN)/python
	$(BIN)/python scripts/screenshots.py

audit: $(VENV)/made-test
	$(BIN)/python -m pip install --quiet pip-audit==2.10.0
	$(BIN)/pip-audit -r requirements.txt -r requirements-test.txt -r requirements-cluster.txt

cluster: $(VENV)/made-cluster
	BOTH_WAYS_ENGINE=ray $(BIN)/python -m streamlit run app.py --server.port $(PORT) --server.address $(ADDRESS) --server.headless true

clean:
	rm -rf $(VENV) build
