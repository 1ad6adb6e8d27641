#!/usr/bin/env bash
# Runs fuzz targets, one after another; docs/TESTING.md tells more.
#   scripts/fuzz.sh [SECONDS [TARGET...]]     60 seconds each; all of fuzz/src/bin
# Needs cargo-fuzz (installed at the version below if it is missing) and a C++ compiler. Stops at the first input that breaks a promise,
# which is then in fuzz/artifacts/TARGET.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

version=0.13.2
seconds=${1:-60}
targets=("${@:2}")
if [ ${#targets[@]} -eq 0 ]; then
    for file in fuzz/src/bin/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi
cargo fuzz --version >/dev/null 2>&1 || cargo install --locked --version "$version" cargo-fuzz

for target in "${targets[@]}"; do
    echo "==> $target, ${seconds}s"
    mkdir -p "fuzz/corpus/$target"
    # The stable compiler has no sanitizers; a panic is found all the same, and the project forbids unsafe code.
    cargo fuzz run --sanitizer none "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="$seconds" -max_len=4096 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1
done
