#!/bin/sh
# Checks licences, duplicates and sources of the libraries that are used, by deny.toml; known faults in them are printed.
# Those depend on the day and not on the tree, so they do not change the exit status.
# Without cargo-deny (tools/oracles.sh installs it) or without the list of faults, that part is skipped with a line.
set -eu
cd "$(dirname "$0")/.."
deny=target/oracles/venv/bin/cargo-deny
[ -x "$deny" ] || deny=$(command -v cargo-deny) || {
    echo "deny: no cargo-deny; licences, duplicates and sources of the libraries are not checked"
    exit 0
}
"$deny" --locked check --hide-inclusion-graph bans licenses sources
if ! found=$(timeout 20 "$deny" --locked check --hide-inclusion-graph advisories 2>&1); then
    case $found in
    *"advisory["* | *"error["* | *"warning["*) echo "$found" ;;
    *) echo "deny: the list of known faults cannot be fetched; it is skipped" ;;
    esac
fi
