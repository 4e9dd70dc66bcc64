#!/bin/sh
# Builds the Python package into a virtual environment under target/ and tests it: stubs, pytest, notebooks.
# What cannot be installed is skipped with a line that says so.
set -eu
cd "$(dirname "$0")/.."
venv=$PWD/target/python/venv
profile=${PROFILE:-dev}
mkdir -p target/python

if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "python: no Python 3.9 or later with venv; the tests of the Python package are skipped"
    exit 0
fi
packages='maturin>=1.16,<2 pytest mypy optuna>=4,<6 nbclient ipykernel matplotlib polars'
if [ ! -x "$venv/bin/maturin" ] || ! "$venv/bin/python" -c 'import pytest, mypy, optuna, nbclient, polars, matplotlib' 2>/dev/null; then
    # shellcheck disable=SC2086
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check $packages; } \
        >target/python/pip.log 2>&1 || true
fi
if [ ! -x "$venv/bin/maturin" ]; then
    echo "python: maturin could not be installed (target/python/pip.log says why); the tests of the Python package are skipped"
    exit 0
fi

VIRTUAL_ENV=$venv "$venv/bin/maturin" develop --quiet --locked --profile "$profile"
if "$venv/bin/python" -c 'import mypy' 2>/dev/null; then
    # The console script and the search import only what is there.
    "$venv/bin/python" -m mypy.stubtest schedlab._schedlab
    "$venv/bin/python" -m mypy --strict --ignore-missing-imports python/schedlab
else
    echo "python: no mypy; the stubs are not checked"
fi
if "$venv/bin/python" -c 'import pytest' 2>/dev/null; then
    "$venv/bin/python" -m pytest --quiet -p no:cacheprovider python/tests "$@"
else
    echo "python: no pytest; the tests of the Python package are skipped"
fi
