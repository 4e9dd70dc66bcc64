#!/bin/sh
# Fuzzes with the compiler that everybody has; all targets if none is named:
#
#     fuzz/run.sh SECONDS [TARGET...]   each so long, from what was learned before
#     fuzz/run.sh --short [TARGET...]   each with the same inputs every time, as the test command does
#
# Needs a C++ compiler for libFuzzer; no nightly Rust, no cargo-fuzz. All that it writes is under target/fuzz.
set -eu
cd "$(dirname "$0")"

extent=${1:?how many seconds for each target?}
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
# With --target, what runs while building is built without these flags.
RUSTFLAGS="--cfg fuzzing $coverage" \
    cargo build --quiet --release --locked --target "$host" --target-dir "$out"

for target in "$@"; do
    if [ "$extent" = --short ]; then
        corpus=$out/short/$target
        rm -rf "$corpus"
        limits="-runs=3000 -seed=1"
    else
        corpus=$out/corpus/$target
        limits="-max_total_time=$extent"
    fi
    mkdir -p "$corpus" "$out/found"
    seeds=seeds/$target
    [ -d "$seeds" ] || seeds=seeds/events
    log=$out/$target.log
    # shellcheck disable=SC2086
    if ! "$out/$host/release/$target" "$corpus" "$seeds" $limits -timeout=60 \
        -artifact_prefix="$out/found/$target-" >"$log" 2>&1; then
        # The reason stands above a stack that can be longer than the last lines.
        grep -A 1 "panicked at" "$log" || true
        tail -n 40 "$log"
        echo "fuzz: $target failed on the file above; mend it, and the file joins $seeds"
        exit 1
    fi
    echo "fuzz: $target, $(sed -n 's/^Done/done/p' "$log" | tail -n 1)"
done
