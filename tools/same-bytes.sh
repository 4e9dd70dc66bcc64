#!/bin/sh
# A debug and an optimized build must write the same trace, byte for byte.
set -eu
cd "$(dirname "$0")/.."
target=$(tools/target.sh)
cargo build --workspace --locked --quiet
cargo build --workspace --locked --quiet --profile quick
sum() {
    "$target/$1/schedlab" trace scenarios/stream-pinned-numa.toml --kernel "$2" | cksum
}
for kernel in v5.18 v7.2; do
    debug=$(sum debug "$kernel")
    optimized=$(sum quick "$kernel")
    if [ "$debug" != "$optimized" ]; then
        echo "same-bytes: under $kernel a debug build writes $debug and an optimized build $optimized" >&2
        exit 1
    fi
done
echo "same-bytes: debug and optimized builds agree"
