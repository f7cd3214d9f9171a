#!/usr/bin/env bash
# Trains with real processes and kills a random one every few seconds: a worker or stage, and every fifth time the chief. Requires of every
# strategy and pipeline schedule that training completes and that every sample of every epoch is counted exactly once. The checker is the
# one of tests/real_trace.h, which shares no code with src/.
#
#   scripts/chaos.sh [STRATEGIES [SECONDS]]      comma-separated strategies; seconds of kills in each run (default 120)
#
# BUILD=build folder (default build), PAUSE=seconds between two kills (5), JOBS=concurrent runs (1), SEED=of the choice of processes (random;
# printed).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

data_parallel=bsp,lb-bsp,asp,asp-look,ssp,dssp,local-sgd,hps,adaptive,grouped,multistep
schedules=naive-mp,gpipe,1f1b,2bw,pipedream,adapipe
strategies=${1:-$data_parallel,$schedules}
seconds=${2:-120}
build=${BUILD:-build}
pause=${PAUSE:-5}
jobs=${JOBS:-1}
seed=${SEED:-$$}
motley=$build/motley
checker=$build/tests/real_trace_test
epoch=60000 # samples of Fashion-MNIST

for program in "$motley" "$checker"; do
  [[ -x $program ]] || { echo "$program: found no such program, expected a built tree (make build)" >&2; exit 2; }
done

folder=$(mktemp -d)
clean_up() {
  local code=$?
  trap - EXIT INT TERM
  local children
  children=$(jobs -p)
  [[ -z $children ]] || kill $children 2>/dev/null || true
  if ((code != 0)); then echo "runs are kept in $folder"; else rm -rf "$folder"; fi
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# children_of LAUNCHER COMMAND: the live processes `motley COMMAND` that it has started
children_of() {
  local child
  for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
    if tr '\0' ' ' 2>/dev/null <"/proc/$child/cmdline" | grep -q "^[^ ]* $2 "; then echo "$child"; fi
  done
}
# number KEY FILE
number() { grep -o "\"$1\":[-0-9.eE+]*" "$2" | head -n 1 | cut -d: -f2; }
# The number of global batches (of 128 samples) that take $seconds at the throughput that the simulator predicts.
batches_for() {
  "$motley" simulate "$1" --strategy "$2" --set job.max_epochs=0.2 --json |
    grep -o '"samples_per_second":[-0-9.eE+]*' | head -n 1 | cut -d: -f2 | awk -v s="$seconds" '{ printf "%d", 10 + $1 * s / 128 }'
}

# one STRATEGY SEED: prints a line of the table; status 0 if the run and its ledger are correct
one() {
  local strategy=$1 job=examples/4421-cheap.toml members=worker pipeline=
  RANDOM=$2
  if [[ ,$schedules, == *,"$strategy",* ]]; then
    job=examples/pipe4-4421-heavy.toml members=stage
    case $strategy in naive-mp) pipeline=1:0 ;; pipedream) pipeline=1:4 ;; gpipe | 1f1b) pipeline=4:0 ;; *) pipeline=4:1 ;; esac
    [[ $pipeline == 1:* ]] || strategy=$strategy:micro_batches=4
  fi
  local run="$folder/${strategy//[:=]/-}" batches epochs kills=0 chief_kills=0 passed=0 code=0 ledger=exact launcher victims victim
  batches=$(batches_for "$job" "$strategy")
  epochs=$(awk -v b="$batches" -v e=$epoch 'BEGIN { printf "%.9f", b * 128 / e }')
  "$motley" train "$job" --strategy "$strategy" --respawn --json --out "$run" --checkpoint-every 10 --set job.max_epochs="$epochs" \
    >"$run.json" 2>"$run.log" &
  launcher=$!
  trap 'kill -9 $launcher 2>/dev/null || true' EXIT
  until grep -qs '"evaluated"' "$run/metrics.jsonl" || ! kill -0 $launcher 2>/dev/null; do sleep 0.2; done
  while ((passed < seconds)) && kill -0 $launcher 2>/dev/null; do
    mapfile -t victims < <(children_of $launcher $members)
    victim=
    if (((kills + chief_kills) % 5 == 4)); then
      victim=$(children_of $launcher chief | head -n 1)
      [[ -z $victim ]] || { kill -9 "$victim" 2>/dev/null && chief_kills=$((chief_kills + 1)); } || true
    elif ((${#victims[@]} >= 2)); then # the last worker is spared, so that the run can go on
      victim=${victims[RANDOM % ${#victims[@]}]}
      if kill -9 "$victim" 2>/dev/null; then kills=$((kills + 1)); fi
    fi
    sleep "$pause"
    passed=$((passed + pause))
  done
  wait $launcher || code=$?
  trap - EXIT
  env MOTLEY_RUN="$run" MOTLEY_RUN_EPOCH=$epoch MOTLEY_RUN_TOTAL=$((batches * 128)) \
    ${pipeline:+MOTLEY_RUN_MINI_BATCHES=$batches MOTLEY_RUN_MICRO_BATCHES=${pipeline%:*} MOTLEY_RUN_AHEAD=${pipeline#*:}} "$checker" --gtest_filter="*MotleyRun*" >"$run.ledger" 2>&1 ||
    ledger="WRONG: $(grep -m 1 'faults, the first' "$run.ledger" || tail -n 1 "$run.ledger")"
  if grep -q SKIPPED "$run.ledger"; then ledger="not checked"; fi
  printf '%-22s %8.1f %6d %6d %9d %9.2f%% %5d  %s\n' "$strategy" "$(number seconds "$run.json" || echo 0)" $kills $chief_kills \
    "$(number samples "$run.json" || echo 0)" "$(number final_accuracy "$run.json" | awk '{ print 100 * $1 }')" $code "$ledger"
  if ((code != 0)) || [[ $ledger != exact ]] || ((kills == 0)); then
    tail -n 5 "$run.log"
    return 1
  fi
}

echo "a random process is killed every $pause s for $seconds s, every fifth time the chief; $jobs at once, seed $seed"
printf '%-22s %8s %6s %6s %9s %10s %5s  %s\n' strategy seconds kills chief samples accuracy exit ledger
bad=0
while read -r strategy; do
  while (($(jobs -rp | wc -l) >= jobs)); do wait -n || bad=$((bad + 1)); done
  seed=$((seed + 1))
  one "$strategy" $seed &
done < <(tr ',' '\n' <<<"$strategies")
while [[ -n $(jobs -p) ]]; do wait -n || { (($? == 127)) && break; bad=$((bad + 1)); }; done
((bad == 0)) || { echo "$bad of the runs above failed"; exit 1; }
