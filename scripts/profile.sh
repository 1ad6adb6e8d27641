#!/usr/bin/env bash
# Records which code a busy server runs, and how often. The compiler reads that record, crates/server/dist.profdata, when it builds the
# cargo profile `dist`: scripts/rustc.sh passes it. Run it before a release, and after a change of the compiler, of a dependency or of an
# optimisation level: the record is void then (docs/adr/0024-compiled-with-a-record.md). It takes about half an hour.
#   scripts/profile.sh
# Builds nuncio with counters and runs scenarios of the benchmark, which need PostgreSQL's server programs and Kannel. Also needs llvm-profdata
# of LLVM 19 or newer: `rustup component add llvm-tools`, or Debian's package llvm-19.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

die() {
    echo "profile.sh: $*" >&2
    exit 1
}

# The toolchain's own, or else the newest that is installed.
profdata() {
    local file found=""
    for file in /usr/bin/llvm-profdata* "$(rustc --print sysroot)"/lib/rustlib/*/bin/llvm-profdata; do
        if [ -x "$file" ]; then found=$file; fi
    done
    [ -n "$found" ] || die "llvm-profdata is not installed: rustup component add llvm-tools"
    echo "$found"
}

profdata=$(profdata)
command -v bearerbox >/dev/null || [ -x /usr/sbin/bearerbox ] || die "Kannel is not installed: apt-get install kannel"
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

"$profdata" merge --sparse --output crates/server/dist.profdata "$counts"
echo "The record is new: run cargo clean --profile dist before the next build of dist."
