#!/bin/sh
# Prints where cargo builds: that depends on the user's configuration (CARGO_TARGET_DIR, build.target-dir).
set -eu
cd "$(dirname "$0")/.."
cargo metadata --format-version 1 --no-deps --locked | sed 's/.*"target_directory":"\([^"]*\)".*/\1/'
