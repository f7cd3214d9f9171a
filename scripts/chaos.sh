#!/bin/sh
# Trains examples/4421-cheap.toml for real while a random worker is killed every few seconds, and requires that training ends well, reaches
# its target and counts every sample of every epoch exactly once (by the checker of tests/real_trace.h, which shares no code with src/).
#
#   scripts/chaos.sh [STRATEGIES [SECONDS]]      strategies with commas between them; for how long to kill (default 120)
#
# BUILD=folder of the build (default build), PAUSE=seconds between two kills (5), SEED=who is killed when (printed; another each time).
set -eu
cd "$(dirname "$0")/.."

strategies=${1:-bsp,lb-bsp,asp,asp-look,ssp,dssp,local-sgd,hps,adaptive,grouped,multistep}
seconds=${2:-120}
build=${BUILD:-build}
pause=${PAUSE:-5}
seed=${SEED:-$$}
motley=$build/motley
checker=$build/tests/real_trace_test
samples=60000  # of an epoch of Fashion-MNIST

for program in "$motley" "$checker"; do
  [ -x "$program" ] || { echo "$program: found no such program, expected a build (make build)" >&2; exit 2; }
done

# Long enough to be disturbed for so many seconds at the pace of asp, the fastest; what can be learned in fewer than three epochs is less.
epochs=$(awk -v s="$seconds" 'BEGIN { e = int(s * 2000 / 60000 + 0.5); print e < 1 ? 1 : e }')
target=$([ "$epochs" -ge 3 ] && echo 0.86 || echo 0.75)

folder=$(mktemp -d)
launcher=
clean_up() {
  code=$?
  trap - EXIT INT TERM
  [ -z "$launcher" ] || kill -9 "$launcher" 2> /dev/null || true
  [ $code -ne 0 ] && echo "runs are kept in $folder" || rm -rf "$folder"
  exit $code
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# The workers that live now: children of the launcher, but for the chief.
workers() {
  for child in $(cat "/proc/$launcher/task/$launcher/children" 2> /dev/null); do
    tr '\0' ' ' 2> /dev/null < "/proc/$child/cmdline" | grep -q ' work ' && echo "$child" || true
  done
}
# one_of SEED WORDS...
one_of() { echo "$@" | awk '{ srand($1); for (i = 0; i < 3; i++) r = rand(); print $(2 + int(r * (NF - 1))) }'; }
# number KEY FILE
number() { grep -o "\"$1\":[-0-9.eE+]*" "$2" | head -n 1 | cut -d: -f2; }

echo "a random worker is killed every $pause s for $seconds s; $epochs epochs, target $target, seed $seed"
printf '%-12s %8s %6s %9s %10s %7s  %s\n' strategy seconds kills samples accuracy target ledger
bad=0
for strategy in $(echo "$strategies" | tr ',' ' '); do
  run=$folder/$(echo "$strategy" | tr ':=' '--')
  "$motley" train examples/4421-cheap.toml --strategy "$strategy" --respawn --require-target --json --out "$run" \
    --set job.max_epochs="$epochs" --set job.target_accuracy=$target > "$run.json" 2> "$run.log" &
  launcher=$!
  until grep -qs '"evaluated"' "$run/metrics.jsonl" || ! kill -0 $launcher 2> /dev/null; do sleep 0.2; done
  kills=0 passed=0
  while [ "$passed" -lt "$seconds" ] && kill -0 $launcher 2> /dev/null; do
    seed=$((seed + 1))
    victims=$(workers)
    # Whoever is alone is spared: without it there would be nobody to survive.
    if [ "$(echo "$victims" | wc -w)" -ge 2 ]; then
      kill -9 "$(one_of $seed $victims)" && kills=$((kills + 1))
    fi
    sleep "$pause"
    passed=$((passed + pause))
  done
  code=0
  wait $launcher || code=$?
  launcher=
  case $code in 0) target_seen=reached ;; 4) target_seen=missed ;; *) target_seen="exit $code" ;; esac
  ledger=exact
  MOTLEY_RUN=$run MOTLEY_RUN_EPOCH=$samples MOTLEY_RUN_TOTAL=$((epochs * samples)) \
    "$checker" --gtest_filter='*MotleyRun*' > "$run.ledger" 2>&1 || ledger="WRONG: $(grep -m 1 'faults, the first' "$run.ledger")"
  grep -q SKIPPED "$run.ledger" && ledger="not checked"
  printf '%-12s %8.1f %6d %9d %9.2f%% %7s  %s\n' "$strategy" "$(number seconds "$run.json")" $kills "$(number samples "$run.json")" \
    "$(number final_accuracy "$run.json" | awk '{ print 100 * $1 }')" "$target_seen" "$ledger"
  [ $code -eq 0 ] && [ "$ledger" = exact ] && [ $kills -gt 0 ] || { bad=$((bad + 1)); tail -n 5 "$run.log"; }
done
[ $bad -eq 0 ] || { echo "$bad of the runs above were not as they should be"; exit 1; }
