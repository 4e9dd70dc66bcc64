#!/bin/sh
# Tests the Python package: stubs, types, pytest, notebooks.
#
#     tools/python.sh [PYTEST ARGUMENTS]           the library that `cargo build --workspace --profile quick` makes
#     tools/python.sh --wheel [PYTEST ARGUMENTS]   the wheel that `pip install .` builds: slower, and what users get
#
# The virtual environment is under target/. What cannot be installed is skipped with a line that says so.
set -eu
cd "$(dirname "$0")/.."
wheel=no
if [ "${1:-}" = --wheel ]; then
    wheel=yes
    shift
fi
target=$(tools/target.sh)
venv=$target/python/venv
mkdir -p "$target/python"

if ! python3 -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "python: no Python 3.9 or later with venv; the tests of the Python package are skipped"
    exit 0
fi
if ! "$venv/bin/python" -c 'import pytest, mypy, optuna, nbclient, ipykernel, polars, matplotlib' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet --disable-pip-version-check \
        pytest mypy 'optuna>=4,<6' nbclient ipykernel matplotlib polars; } >"$target/python/pip.log" 2>&1 || true
fi
if ! "$venv/bin/python" -c 'import pytest' 2>/dev/null; then
    echo "python: no pytest ($target/python/pip.log says why); the tests of the Python package are skipped"
    exit 0
fi

site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
if [ "$wheel" = yes ]; then
    rm -f "$site/schedlab.pth"
    "$venv/bin/pip" install --quiet --disable-pip-version-check --force-reinstall --no-deps .
else
    # The package as it is in the tree, with the library beside it: a wheel would compile everything again.
    cargo build --workspace --profile quick --locked --quiet
    "$venv/bin/pip" uninstall --quiet --yes schedlab 2>/dev/null || true
    rm -rf "$target/python/site"
    mkdir -p "$target/python/site/schedlab"
    ln -s "$PWD"/python/schedlab/* "$target/python/site/schedlab/"
    cp "$target/quick/lib_schedlab.so" "$target/python/site/schedlab/_schedlab.abi3.so"
    echo "$target/python/site" >"$site/schedlab.pth"
    printf '#!%s\nimport sys\nfrom schedlab._command import main\nsys.exit(main())\n' "$venv/bin/python" >"$venv/bin/schedlab"
    chmod +x "$venv/bin/schedlab"
fi
if "$venv/bin/python" -c 'import mypy' 2>/dev/null; then
    "$venv/bin/python" -m mypy.stubtest schedlab._schedlab
    "$venv/bin/python" -m mypy --strict --ignore-missing-imports python/schedlab
else
    echo "python: no mypy; the stubs are not checked"
fi
"$venv/bin/python" -m pytest --quiet -p no:cacheprovider python/tests "$@"
