#!/bin/sh
# Builds schedlab and runs its main job on embedded defaults.
# Needs a Rust toolchain of version 1.88 or later; says how to get one if it is missing.
set -eu
cd "$(dirname "$0")"

if ! command -v cargo >/dev/null 2>&1; then
    echo "install.sh: cargo is not installed; get Rust 1.88 or later with rustup or your distribution's rustc and cargo packages" >&2
    exit 2
fi
if ! command -v cc >/dev/null 2>&1; then
    if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
        apt-get update -q && apt-get install -qy --no-install-recommends gcc libc6-dev
    else
        echo "install.sh: a C linker is missing; install gcc" >&2
        exit 2
    fi
fi

# Cargo shows what it compiles: the first build takes some minutes.
cargo build --release --locked
target=$(tools/target.sh)
echo "built $target/release/schedlab"
exec "$target/release/schedlab" compare scenarios/stream-pinned-numa.toml
