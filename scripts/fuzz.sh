#!/usr/bin/env bash
# Feeds every reader of foreign bytes with noise for a while: builds fuzz/ with clang and runs each target for its share of the time.
# What a target finds interesting is kept in build-fuzz/corpus and used again; an input that breaks one stays in build-fuzz/broken.
# usage: scripts/fuzz.sh SECONDS        (BUILD=folder to build elsewhere than in build-fuzz)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ ${1-} =~ ^[1-9][0-9]*$ ]] || { echo "fuzz: say for how many seconds, such as scripts/fuzz.sh 60" >&2; exit 2; }
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
    echo "fuzz: $target: $(awk '/number_of_executed_units/ { print $2 }' "$log") inputs in $share s, nothing broken"
  else
    failed+=("$target")
    echo "fuzz: $target: BROKEN; $log has all of it:" >&2
    grep -E 'what\(\)|runtime error|ERROR:|SUMMARY:|Test unit written' "$log" >&2 || tail -n 20 "$log" >&2
  fi
done
((${#failed[@]} == 0)) || { echo "fuzz: broken: ${failed[*]}; the inputs are below $build/broken" >&2; exit 1; }
