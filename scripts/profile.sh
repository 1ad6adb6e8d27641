#!/usr/bin/env bash
# Records which code a busy server runs, and how often. The compiler reads that record, crates/server/dist.profdata, when it builds the
# cargo profile `dist`: scripts/rustc.sh passes it. To be repeated before a release and after a new compiler; about half an hour.
#   scripts/profile.sh
# Builds nuncio with counters and runs scenarios of the benchmark, whose programs it needs: PostgreSQL and Kannel. Needs llvm-profdata too, of
# LLVM 19 or newer: `rustup component add llvm-tools`, or the package llvm-19.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

die() {
    echo "profile.sh: $*" >&2
    exit 1
}

profdata() {
    local found
    found=$(ls "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata /usr/bin/llvm-profdata-* 2>/dev/null | sort -V | tail -n 1)
    [ -n "$found" ] || found=$(command -v llvm-profdata) || die "llvm-profdata is not installed: rustup component add llvm-tools"
    echo "$found"
}

merge=$(profdata)
work=$(mktemp -d "${TMPDIR:-/tmp}/nuncio-profile.XXXXXX")
trap 'rm -rf "$work"' EXIT
target=$(readlink -m "${CARGO_TARGET_DIR:-target}")

counts=$target/profile/counts # always the same: cargo compiles again what is built with other flags
RUSTFLAGS="-Cprofile-generate=$counts" CARGO_TARGET_DIR=$target/profile cargo build --profile dist -p nuncio
cargo build --release -p nuncio-bench
rm -rf "$counts" # build scripts count too

bench() {
    "$target/release/nuncio-bench" --bin "$target/profile/dist/nuncio" --rounds 1 --seconds 2 --report "$work/$1.md" "$@"
}
bench accept
bench smpp
bench webhooks
bench e2e
bench broadcast --recipients 20000

"$merge" merge --sparse --output crates/server/dist.profdata "$counts"
