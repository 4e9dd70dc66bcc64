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
xtask() {
    step cargo run --quiet --locked --profile quick --package xtask -- "$@"
}

step cargo fmt --all --check
xtask tidy
xtask fidelity --check
xtask predictions --quick
step cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
step cargo test --workspace --locked --quiet
step fuzz/run.sh --short
step tools/same-bytes.sh
step cargo run --quiet --locked --profile quick --package schedlab-cli -- reproduce --quick
xtask instructions --check
RUSTDOCFLAGS="-D warnings" step cargo doc --workspace --no-deps --locked --quiet
