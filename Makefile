# make demo [ROBOT=go1] [DEMO=trot]   the simulation node and a controller over ROS 2, out/demo.png
# make test               all tests                 make lint       ruff and mypy
# make test-oldest        tests and demo on Pinocchio 3.9, ROS 2 Jazzy, Ubuntu 24.04's numpy
# make test-bounds        tests of the kernels; each index into an array is checked
# make benchmark          microseconds per step     make generate   config/ and docs/ from the code
# make determinism        equal runs, one hash?     make soak       an hour of simulated time
# make fuzz               odd inputs in great numbers, an hour (ARGS='calls --count 1000 --seed 1')
# make textbook           the systems of the texts: table, out/textbook/*.png (ARGS='cart_pendulum')
# make reality            contact laws against measured motions, out/reality (ARGS='cube_tosses')
# make docs               the documentation site, out/docs/html (GALLERY=1: its examples are run)
# make clean              remove what was made (not the virtual environments: make distclean)

ROBOT ?= go1
DEMO ?= stance
PYTHON ?= python3
VENV := .venv
OLDEST := .venv-oldest
# These look only at the sources, need colcon, the linters or MuJoCo, ask the same calls again, or
# ask for physics in which no version plays a part.
LEFT_OUT := $(foreach name,architecture packaging wheel manifest launch benchmarks which_model,--ignore=test/project/test_$(name).py) \
    $(foreach name,fuzz gallery textbook verdict,--ignore=test/$(name)) \
    $(patsubst %,--ignore=%,$(filter-out $(foreach name,analytic golden_numbers laws,%/test_$(name).py),$(wildcard test/physics/test_*.py)))
# Of what is compiled, and of nothing else: as many as CI has time for.
CHECKED := $(foreach name,collision compare constraints control derivatives dynamics fuzz identify judge maximal models physics reality replay robot sensors simulation solvers support terrain textbook,test/$(name))
PARALLEL := -n 3 --dist loadfile --no-loadscope-reorder
REAL_TIME := test/ros/process
# Quiet: setuptools warns that an editable installation is editable.
INSTALL := -m pip install --quiet --disable-pip-version-check
FUZZ := calls urdfs recordings problems files 'starts --count 1000' \
    'messages --count 10000' 'parameters --count 10000'
DECLARED := setup.py setup.cfg pyproject.toml package.xml

# A sourced ROS installation is for another Python: its packages must not hide those of $(VENV).
unexport PYTHONPATH PYTHONHOME LD_LIBRARY_PATH
unexport AMENT_PREFIX_PATH COLCON_PREFIX_PATH RMW_IMPLEMENTATION ROS_DISTRO
# The tests start a hundred processes, and pytest rewrites 450 modules: bytecode is kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test lint test-oldest test-bounds benchmark determinism soak fuzz textbook reality generate docs format clean distclean
.DELETE_ON_ERROR:

demo: $(VENV)/ready
	$(VENV)/bin/python -m contact_sim.ros.demo --robot $(ROBOT) --demo $(DEMO)

# Side by side what needs no real time (many wait for processes), then one by one what does; 5:
# nothing was selected.
test: $(VENV)/ready
	$(VENV)/bin/python -m contact_sim.precompile --jobs 2
	$(VENV)/bin/python -m pytest -m 'not real_time' $(PARALLEL) $(ARGS) || [ $$? -eq 5 ]
	$(VENV)/bin/python -m pytest -m real_time $(or $(ARGS),$(REAL_TIME)) || [ $$? -eq 5 ]

lint: $(VENV)/ready
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy

test-oldest: $(OLDEST)/ready
	$(OLDEST)/bin/python -m contact_sim.precompile --jobs 2
	$(OLDEST)/bin/python -m pytest $(LEFT_OUT) -m 'not ros' $(PARALLEL) $(ARGS)
	$(OLDEST)/bin/python -m contact_sim.ros.demo --robot $(ROBOT) --out out/oldest

# Kernels that are called by address cannot raise: an index out of bounds is a warning there.
test-bounds: $(VENV)/ready
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(CURDIR)/out/checked $(VENV)/bin/python -m pytest \
	    -W error::pytest.PytestUnraisableExceptionWarning -m 'not real_time' $(PARALLEL) $(CHECKED) $(ARGS)

benchmark: $(VENV)/ready
	$(VENV)/bin/python benchmarks/step_time.py $(ARGS)
	$(VENV)/bin/python benchmarks/model_time.py

determinism: $(VENV)/ready
	$(VENV)/bin/python benchmarks/determinism.py $(ARGS)

soak: $(VENV)/ready
	$(VENV)/bin/python benchmarks/soak.py $(ARGS)

# All kinds, one after the other, or the one in ARGS; each goes on where another found something.
fuzz: $(VENV)/ready
ifdef ARGS
	$(VENV)/bin/python test/fuzz/fuzz.py $(ARGS)
else
	@failed=0; for kind in $(FUZZ); do \
	    $(VENV)/bin/python test/fuzz/fuzz.py $$kind || failed=1; done; exit $$failed
endif

textbook: $(VENV)/ready
	PYTHONPATH=examples $(VENV)/bin/python -m textbook $(ARGS)

reality: $(VENV)/ready
	$(VENV)/bin/python -m contact_sim.reality $(ARGS)

generate: $(VENV)/ready
	$(VENV)/bin/python -m contact_sim.ros.generate
	PYTHONPATH=examples $(VENV)/bin/python -m textbook.reference
	$(VENV)/bin/python docs/extensions/step_figure.py

# A warning is an error, so is a name or a link that leads nowhere; without network.
docs: $(VENV)/ready
	GALLERY=$(GALLERY) $(VENV)/bin/python -m sphinx --quiet -E -W --keep-going -d out/docs/doctrees docs out/docs/html
	@echo "out/docs/html/index.html"

format: $(VENV)/ready
	$(VENV)/bin/ruff check --fix
	$(VENV)/bin/ruff format

$(VENV)/ready: $(DECLARED)
	$(PYTHON) -m venv $(VENV)
	PYTHONWARNINGS=ignore $(VENV)/bin/python $(INSTALL) --editable '.[ros,robots,demo,meshes,view,export,verdict,policy,gym,peers,docs,test,lint,colcon]'
	touch $@

# Pinocchio 3 wheels ask for a newer numpy than they need; Ubuntu's versions go in afterwards.
$(OLDEST)/ready: $(DECLARED)
	$(PYTHON) -m venv $(OLDEST)
	PYTHONWARNINGS=ignore $(OLDEST)/bin/python $(INSTALL) --editable '.[ros-jazzy,robots,demo,meshes,view,export,verdict,policy,gym,test]' \
	    'pin==3.9.0' 'cmeel-urdfdom<5' 'cmeel-tinyxml2<11'
	$(OLDEST)/bin/python $(INSTALL) --no-deps \
	    'numpy==1.26.4' 'scipy==1.11.4' 'numba==0.58.1' 'llvmlite==0.41.1' 'pyarrow==15.0.2'
	touch $@

clean:
	rm -rf build install log out docs/api/generated docs/gallery .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	    .import_linter_cache
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +

distclean: clean
	rm -rf $(VENV) $(OLDEST) contact_sim.egg-info
