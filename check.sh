#!/bin/sh
# The gate before a commit: format, tidy, lints, and the tests beside the code, in about a minute on a warm tree.
# ./test.sh is the whole: it adds the tests of commands, recordings, real tools, fuzzing and documentation.
#
#     ./check.sh              all crates
#     ./check.sh sched sim    the tests of these alone
set -eu
cd "$(dirname "$0")"

packages="--workspace"
if [ $# -gt 0 ]; then
    packages=""
    for crate in "$@"; do
        [ "$crate" = schedlab ] || crate="schedlab-$crate"
        packages="$packages --package $crate"
    done
fi

step() {
    echo "== $*"
    "$@"
}

step cargo fmt --all --check
step cargo run --quiet --locked --profile quick --package xtask -- tidy
step cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
# shellcheck disable=SC2086
step cargo test $packages --lib --bins --profile quick --locked --quiet
