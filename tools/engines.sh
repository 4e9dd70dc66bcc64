#!/bin/sh
# Runs one sweep on a Ray cluster, a Dask cluster and Slurm, all real and on this host, kills a worker of each with
# SIGKILL midway, and compares the files with those of a local run. Needs root for Slurm. An engine that cannot be
# installed is named and skipped; the status is 1 if none could be tried.
set -eu
cd "$(dirname "$0")/.."
tools/python.sh -k no_test_at_all >/dev/null 2>&1 || true
venv=$PWD/target/python/venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tried=0
"$venv/bin/pip" install --quiet --disable-pip-version-check 'ray>=2.40' 'distributed>=2024.1' || true
for engine in ray dask; do
    if "$venv/bin/python" -c "import $([ $engine = dask ] && echo distributed || echo ray)" 2>/dev/null; then
        "$venv/bin/python" tools/engines/killed_worker.py "$engine" "$work/$engine"
        tried=1
    else
        echo "engines: $engine could not be installed; skipped"
    fi
done
if tools/engines/slurm.sh "$venv/bin/schedlab" "$work/slurm"; then
    tried=1
else
    status=$?
    [ "$status" = 77 ] || exit "$status"
fi
[ "$tried" = 1 ]
