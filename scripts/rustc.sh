#!/usr/bin/env bash
# Cargo calls this instead of the compiler, whose path is the first argument (.cargo/config.toml). The cargo profile `dist` is compiled with
# a record of what a busy server ran, so that the compiler knows what to make fast; scripts/profile.sh makes it. Everything else is
# compiled as it would be without this script. Not by sh: dash passes no variable on whose name has a dash, such as CARGO_BIN_EXE_nuncio-bench.
case "$*" in
*profile-generate*) ;;
*/dist/deps*)
    # What changed since the record was made is compiled without it.
    exec "$@" "-Cprofile-use=$(dirname "$0")/../crates/server/dist.profdata" -Cllvm-args=-no-pgo-warn-mismatch
    ;;
esac
exec "$@"
