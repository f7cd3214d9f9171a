#!/usr/bin/env bash
# The job of containers/compose.yaml in containers made of namespaces and cgroups: a chief and four workers, each in its own network
# namespace with a shaped link (tc tbf), each worker with its own share of a processor, with a token. The job is that of the compose file
# and describes equal workers; the shares are half of those in the compose file, so that two processors are enough. Required: training
# completes with some accuracy, no worker is lost, every sample is counted exactly once, and the batches are ordered like the shares,
# which the planner can only have measured.
#
#   containers_test.sh MOTLEY [STRATEGY]      exit 0: passed; 77: not possible here (the reason is printed); else: failed
set -euo pipefail

motley=$(realpath "$1")
strategy=${2:-hps}
epochs=2
containers=$(realpath "$(dirname "$0")/../containers")
job=$containers/cluster.toml
epoch_samples=60000  # of Fashion-MNIST
least_accuracy=0.75
least_ratio=2        # between the batches of the fastest and the slowest worker; their shares are 4 to 1
most_seconds=300     # of training
port=7447
id=mtly$$            # prefix of all names; a link's name has at most 15 characters
period_us=100000     # Docker's default

workers=(worker-1 worker-2 worker-3 worker-4)
mbit=(400 200 100 50)

skip() {
  echo "skipped: $*"
  exit 77
}
fail() {
  echo "FAILED: $*"
  exit 1
}

# Requirements ------------------------------------------------------------------------------------------------------------------------------

((EUID == 0)) || skip "network namespaces and cgroups need root"
for tool in ip tc awk od; do command -v "$tool" > /dev/null || skip "there is no $tool"; done
ip netns add "$id-probe" 2> /dev/null || skip "this kernel or container gives no network namespaces"
ip netns del "$id-probe"
if [[ -w /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]]; then
  cgroups=/sys/fs/cgroup/cpu version=1
elif grep -qsw cpu /sys/fs/cgroup/cgroup.controllers; then
  cgroups=/sys/fs/cgroup version=2
else
  skip "there is no cgroup controller of the processor, of version 1 or 2"
fi
mkdir "$cgroups/$id-probe" 2> /dev/null || skip "$cgroups: no cgroup can be made here"
rmdir "$cgroups/$id-probe"
doctor=$("$motley" doctor --json) || true
[[ $doctor == *'"torch":true'* ]] || skip "built without torch: a real cluster has nothing to train"
[[ -d /usr/share/datasets/fashion-mnist ]] || skip "Fashion-MNIST is not installed (scripts/setup.sh installs it)"

folder=$(mktemp -d)
pids=()

clean_up() {
  local code=$? pid name
  trap - EXIT INT TERM
  for pid in "${pids[@]}"; do kill -9 "$pid" 2> /dev/null || true; done
  for pid in "${pids[@]}"; do wait "$pid" 2> /dev/null || true; done
  for name in chief "${workers[@]}"; do ip netns del "$id-$name" 2> /dev/null || true; done
  for name in "${workers[@]}"; do rmdir "$cgroups/$id-$name" 2> /dev/null || true; done
  if ((code != 0 && code != 77)); then
    echo "what the processes said:"
    tail -n 20 "$folder"/*.log 2> /dev/null || true
  fi
  rm -rf "$folder"
  exit "$code"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Five containers ---------------------------------------------------------------------------------------------------------------------------

# share NAME: the `cpus` of that service in the compose file.
share() {
  awk -v name="$1:" '/^  [^ ]/ { here = $1 == name } here && $1 == "cpus:" { print $2 }' "$containers/compose.yaml"
}

# join NAME SUBNET MBIT: a namespace, and a link between it and the chief's.
join() {
  local inside=$id-$1 near=$id-$2 side namespace device
  ip netns add "$inside"
  ip -n "$inside" link set lo up
  ip link add "$near" netns "$id-chief" type veth peer name eth0 netns "$inside"
  ip -n "$id-chief" addr add "10.77.$2.1/24" dev "$near"
  ip -n "$inside" addr add "10.77.$2.2/24" dev eth0
  for side in "$id-chief $near" "$inside eth0"; do
    read -r namespace device <<< "$side"
    ip -n "$namespace" link set "$device" up
    # The queue holds a whole model: no packet is dropped, only the link limits the rate.
    tc -n "$namespace" qdisc add dev "$device" root tbf rate "$3mbit" burst 32kb limit 32mb || skip "tc tbf does not work here"
  done
  ip -n "$inside" route add 10.77.0.1 via "10.77.$2.1"
}

# limit NAME MICROSECONDS: processor time in each period.
limit() {
  local cgroup=$cgroups/$id-$1
  mkdir "$cgroup"
  if ((version == 1)); then
    echo $period_us > "$cgroup/cpu.cfs_period_us"
    echo "$2" > "$cgroup/cpu.cfs_quota_us"
  else
    [[ -e $cgroup/cpu.max ]] || echo +cpu > "$cgroups/cgroup.subtree_control" || skip "the processor's cgroup controller cannot be used here"
    echo "$2 $period_us" > "$cgroup/cpu.max"
  fi
}

# inside NAME COMMAND...: executes the command in that container, with the thread settings of the image.
inside() {
  local name=$1
  shift
  [[ $name == chief ]] || echo "$BASHPID" > "$cgroups/$id-$name/cgroup.procs"
  exec ip netns exec "$id-$name" env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$@"
}

ip netns add "$id-chief"
ip -n "$id-chief" link set lo up
ip -n "$id-chief" addr add 10.77.0.1/32 dev lo  # the address at which it listens, for all links
quotas=() batch=()
for i in "${!workers[@]}"; do
  cpus=$(share "${workers[i]}")
  [[ -n $cpus ]] || fail "$containers/compose.yaml: found no cpus of a service ${workers[i]}, expected one for each worker"
  quotas[i]=$(awk -v c="$cpus" -v p=$period_us 'BEGIN { printf "%d", c * p / 2 }')
  join "${workers[i]}" $((i + 1)) "${mbit[i]}"
  limit "${workers[i]}" "${quotas[i]}"
done

# The job -----------------------------------------------------------------------------------------------------------------------------------

run=$folder/run
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/token"
inside chief "$motley" chief "$job" --strategy "$strategy" --set job.max_epochs=$epochs --set job.max_seconds=$most_seconds \
  --listen "10.77.0.1:$port" --token-file "$folder/token" --out "$run" --json > "$folder/result.json" 2> "$folder/chief.log" &
pids+=($!)
for name in "${workers[@]}"; do
  inside "$name" "$motley" worker --join "10.77.0.1:$port" --node "$name" --device cpu --token-file "$folder/token" 2> "$folder/$name.log" &
  pids+=($!)
done
# The workers end first: without a chief they give up, but a chief without workers would wait for ever.
for pid in "${pids[@]:1}"; do wait "$pid" || fail "a worker ended with $?, expected 0"; done
wait "${pids[0]}" || fail "the chief ended with $?, expected 0"
pids=()

# Results -----------------------------------------------------------------------------------------------------------------------------------

# number KEY: a value of the result. of NODE KEY: a value of that worker's row.
number() { grep -o "\"$1\":[-0-9.eE+]*" | head -n 1 | cut -d: -f2; }
of() { grep -o "{\"node\":\"$1\"[^}]*}" "$folder/result.json" | number "$2"; }
# holds EXPRESSION: whether an arithmetic condition holds.
holds() { awk "BEGIN { exit !($1) }"; }

# ledger: reads trace.bin (format in tests/real_trace.h) and prints its faults. The positions leased to a worker, less the returned ones,
# must be those counted for it; and every position of every epoch is counted once.
ledger() {
  od -An -v -tu1 -j16 -w56 "$run/trace.bin" | awk -v epoch_samples=$epoch_samples -v epochs=$epochs '
    function field(at, bytes,   i, value) { for (i = bytes; i > 0; i--) value = value * 256 + $(at + i); return value }
    function told(position) { printf "position %d of epoch %d", position % epoch_samples, int(position / epoch_samples) }
    {
      kind = field(8, 1); step = field(9, 4) " " field(13, 8)
      if (kind == 3 || kind == 16) { start = field(21, 4) * epoch_samples; first = field(25, 8); last = field(33, 8) }
      if (kind == 9) first = field(29, 8)                                                                                # samples
      if (kind == 3) for (p = first; p < last; p++) holder[start + p] = step                                             # leased
      if (kind == 3) leased[step] = leased[step] " " start + first " " start + last
      if (kind == 16) for (p = first; p < last; p++) if (holder[start + p] == step) delete holder[start + p]             # returned
      if (kind == 9) {                                                                                                   # counted
        samples = 0
        n = split(leased[step], ends, " ")
        for (i = 1; i < n; i += 2) for (p = ends[i]; p < ends[i + 1]; p++) if (holder[p] == step) { samples++; counted[p]++ }
        if (samples != first) printf "worker and step %s: %d counted, %d leased and not given back\n", step, first, samples
        delete leased[step]
      }
    }
    END {
      for (p = 0; p < epochs * epoch_samples; p++) if (counted[p] != 1) { told(p); printf " was counted %d times\n", counted[p] }
      for (p in counted) if (p + 0 >= epochs * epoch_samples) { told(p); print " is beyond the end" }
    }'
}

accuracy=$(number final_accuracy < "$folder/result.json")
awk -v a="$accuracy" -v s="$(number samples_per_second < "$folder/result.json")" -v u="$(number updates < "$folder/result.json")" \
  -v t="$(number seconds < "$folder/result.json")" 'BEGIN { printf "%d updates in %.1f s: %.0f samples/s, accuracy %.2f %%\n", u, t, s, 100 * a }'
for i in "${!workers[@]}"; do
  batch[i]=$(of "${workers[i]}" mean_batch)
  awk -v name="${workers[i]}" -v share="${quotas[i]}" -v period=$period_us -v link="${mbit[i]}" -v batch="${batch[i]}" \
    -v samples="$(of "${workers[i]}" samples)" -v compute="$(of "${workers[i]}" compute_s)" 'BEGIN {
      printf "%-9s %5.1f %% of a processor, %3d Mbit/s: %6.1f samples a step, %5.0f samples/s\n", name, 100 * share / period, link, batch,
        samples / compute }'
done

lost=$(grep -c '^lost ' "$folder/chief.log" || true)
((lost == 0)) || fail "$lost times a worker was lost, expected none: $(grep -m 1 '^lost ' "$folder/chief.log")"
grep -q '"ended":"every sample counted"' "$folder/result.json" || fail "expected training to end with every sample counted"
faults=$(ledger)
[[ -z $faults ]] || fail "the ledger is not exact: $(wc -l <<< "$faults") faults, the first: ${faults%%$'\n'*}"
holds "$accuracy >= $least_accuracy" || fail "accuracy $accuracy, expected at least $least_accuracy"
for i in "${!workers[@]}"; do
  for k in "${!workers[@]}"; do
    ((quotas[i] > quotas[k])) || continue
    holds "${batch[i]} > ${batch[k]}" || fail "${workers[i]} has more of a processor than ${workers[k]}, and no larger batches"
  done
done
slowest=$(printf '%s\n' "${batch[@]}" | sort -g | head -n 1)
holds "${batch[0]} >= $least_ratio * $slowest" || fail "batches of ${batch[0]} and $slowest, expected the first to be $least_ratio times the other"
echo "every sample was counted once; the batches lie as the shares do"
