#!/bin/sh
# Passes all tests: format, lints, unit, property, snapshot and ground-truth tests, a short run of
# each fuzz target, documentation.
# Real tools that some tests compare with are installed first where that is possible
# (as root with apt); without them those tests say that they were skipped.
set -eu
cd "$(dirname "$0")"

./tools/oracles.sh
[ -f target/oracles/env ] && . ./target/oracles/env

step() {
    echo "== $*"
    "$@"
}

# Simulations and recordings are long: what runs them is built for speed, without the minutes that a release takes.
# The tests use that build too. A second one with checks of overflow is among the longer checks; the fuzz targets have them.
# The whole workspace at a time, as its parts alone would have other features of the libraries, and so other builds.
target=$(tools/target.sh)

step cargo fmt --all --check
step cargo build --workspace --profile quick --locked --quiet
step tools/deny.sh
step "$target/quick/xtask" tidy
step "$target/quick/xtask" fidelity --check
step "$target/quick/xtask" predictions --quick
step "$target/quick/xtask" instructions --check
step "$target/quick/schedlab" reproduce --quick
step tools/python.sh
step cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
step cargo test --workspace --profile quick --locked --quiet
step fuzz/run.sh --short
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked --quiet
