#!/bin/sh
# Fuzzes with the compiler that everybody has: `fuzz/run.sh SECONDS [TARGET...]`, each target so long, all if none is
# named. Needs a C++ compiler for libFuzzer; no nightly Rust, no cargo-fuzz. What it comes to know stays under target/fuzz.
set -eu
cd "$(dirname "$0")"

seconds=${1:?how many seconds for each target?}
shift
if ! command -v c++ >/dev/null 2>&1; then
    echo "fuzz: skipped, there is no C++ compiler"
    exit 0
fi
[ $# -gt 0 ] || set -- $(sed -n 's/^name = "\([a-z_]*\)"$/\1/p' Cargo.toml)

out=$PWD/../target/fuzz
host=$(rustc -vV | sed -n 's/^host: //p')
coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
coverage="$coverage -Cllvm-args=-sanitizer-coverage-trace-compares"
# A target of its own, so that what runs while building is built without.
RUSTFLAGS="--cfg fuzzing $coverage" \
    cargo build --quiet --release --locked --target "$host" --target-dir "$out"

for target in "$@"; do
    mkdir -p "$out/corpus/$target" "$out/found"
    seeds=seeds/$target
    [ -d "$seeds" ] || seeds=seeds/events
    log=$out/$target.log
    if ! "$out/$host/release/$target" "$out/corpus/$target" "$seeds" -max_total_time="$seconds" -timeout=20 \
        -artifact_prefix="$out/found/$target-" >"$log" 2>&1; then
        tail -n 40 "$log"
        echo "fuzz: $target failed on the file above; mend it, and the file joins $seeds"
        exit 1
    fi
    echo "fuzz: $target, $(grep '^Done ' "$log" | tail -n 1 | tr 'D' 'd')"
done
