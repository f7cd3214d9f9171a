#!/usr/bin/env bash
# Fuzzes every parser of untrusted bytes: builds fuzz/ with clang and runs each target for its share of the time. Inputs that reach new
# code are kept in build-fuzz/corpus and used again; an input that fails is kept in build-fuzz/broken.
# usage: scripts/fuzz.sh SECONDS        (BUILD=build folder, default build-fuzz)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: expected a number of seconds, such as scripts/fuzz.sh 60" >&2; exit 2; }
clang=$(command -v clang++ || command -v clang++-14) || { echo "fuzz: found no clang++; on Debian 12: apt-get install clang" >&2; exit 2; }

build=${BUILD:-build-fuzz}
cmake -S . -B "$build" -G Ninja -DCMAKE_CXX_COMPILER="$clang" -DCMAKE_BUILD_TYPE=RelWithDebInfo \
  -DMOTLEY_FUZZ=ON -DMOTLEY_TORCH=OFF -DMOTLEY_TESTS=OFF >/dev/null
cmake --build "$build" --target fuzzers --parallel "${JOBS:-$(nproc)}"

targets=()
for source in fuzz/*_fuzz.cpp; do targets+=("$(basename "$source" _fuzz.cpp)"); done
share=$(($1 / ${#targets[@]}))
((share > 0)) || share=1

failed=()
for target in "${targets[@]}"; do
  corpus=$build/corpus/$target broken=$build/broken/$target log=$build/$target.log
  mkdir -p "$corpus" "$broken"
  seeds=("fuzz/seeds/$target")
  [[ $target == job ]] && seeds+=(examples)
  options=(-max_total_time="$share" -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -artifact_prefix="$broken/")
  if "$build/fuzz/${target}_fuzz" "${options[@]}" "$corpus" "${seeds[@]}" >"$log" 2>&1; then
    echo "fuzz: $target: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs in $share s, no failure"
  else
    failed+=("$target")
    echo "fuzz: $target: FAILED; the full output is in $log:" >&2
    grep -E 'what\(\)|runtime error|ERROR:|SUMMARY:|Test unit written' "$log" >&2 || tail -n 20 "$log" >&2
  fi
done
((${#failed[@]} == 0)) || { echo "fuzz: failed: ${failed[*]}; the inputs are in $build/broken" >&2; exit 1; }
