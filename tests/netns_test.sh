#!/bin/sh
# A chief and two workers as if on three machines: network namespaces joined by links of 1 Gbit/s and 200 Mbit/s (tc tbf), workers with
# unequal shares of a processor (cgroup v1, if present), with a token. Trains with bsp and lb-bsp; then the device speeds of the run and
# the links make a job for `motley simulate`, and the two throughputs must agree within 15 %.
#
#   netns_test.sh MOTLEY        exit 0: they agree; 77: not possible here (the reason is printed); else: failed
set -eu

motley=$1
tolerance=15  # per cent
port=7447
id=mtly$$     # prefix of all names; a link's name has at most 15 characters
fast_mbit=1000
slow_mbit=200
# Of 1514 bytes of a packet 1448 are payload; the initial burst at full speed is too small to matter.
goodput() { awk -v m="$1" 'BEGIN { printf "%.0f", m * 1e6 / 8 * 1448 / 1514 }'; }

skip() { echo "skipped: $*"; exit 77; }
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
for tool in ip tc awk; do command -v $tool > /dev/null || skip "there is no $tool"; done
ip netns add "$id-probe" 2> /dev/null || skip "this kernel or container gives no network namespaces"
ip netns del "$id-probe"
"$motley" doctor --json | grep -q '"torch":true' || skip "built without torch: a real cluster has nothing to train"

folder=$(mktemp -d)
cgroups=/sys/fs/cgroup/cpu
pids=

clean_up() {
  code=$?
  trap - EXIT INT TERM
  for pid in $pids; do kill -9 "$pid" 2> /dev/null || true; done
  for pid in $pids; do wait "$pid" 2> /dev/null || true; done
  for name in chief fast slow; do ip netns del "$id-$name" 2> /dev/null || true; done
  for name in fast slow; do rmdir "$cgroups/$id-$name" 2> /dev/null || true; done
  [ $code -eq 0 ] || [ $code -eq 77 ] || { echo "what the processes said:"; tail -n 20 "$folder"/*.log 2> /dev/null || true; }
  rm -rf "$folder"
  exit $code
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Three machines ----------------------------------------------------------------------------------------------------------------------------

# A link between the chief and a worker: NAME SUBNET MBIT.
join() {
  ip netns add "$id-$1"
  ip -n "$id-$1" link set lo up
  ip link add "$id$1" netns "$id-chief" type veth peer name eth0 netns "$id-$1"
  ip -n "$id-chief" addr add "10.77.$2.1/24" dev "$id$1"
  ip -n "$id-$1" addr add "10.77.$2.2/24" dev eth0
  ip -n "$id-$1" link set eth0 up
  ip -n "$id-$1" route add 10.77.0.1 via "10.77.$2.1"
  for side in "chief $id$1" "$1 eth0"; do
    ns=$id-${side% *} dev=${side#* }
    ip -n "$ns" link set "$dev" up
    # The queue holds a whole model: no packet is dropped, only the link limits the rate.
    tc -n "$ns" qdisc add dev "$dev" root tbf rate "$3mbit" burst 32kb limit 32mb || skip "tc tbf does not work here"
  done
}
ip netns add "$id-chief"
ip -n "$id-chief" link set lo up
ip -n "$id-chief" addr add 10.77.0.1/32 dev lo  # the address at which it listens, for all links
join fast 1 $fast_mbit
join slow 2 $slow_mbit

# A share of one processor: NAME PER_CENT. The period is short compared with a step, so that a share is a constant speed; a quota is at least 1 ms.
limit() {
  cgroup=$cgroups/$id-$1
  mkdir "$cgroup" 2> /dev/null && echo 10000 > "$cgroup/cpu.cfs_period_us" && echo $(($2 * 100)) > "$cgroup/cpu.cfs_quota_us" && return
  rmdir "$cgroup" 2> /dev/null || true
  echo "no quotas of the processor here (cgroup v1): both workers are as fast as it is"
}
limit fast 40
limit slow 15

# The job -----------------------------------------------------------------------------------------------------------------------------------

# Computation takes much longer than communication: a real worker overlaps receiving and sending of layers with computation, which the
# simulator does not.
# write_job NAME FAST_RATE FAST_OVERHEAD FAST_JITTER SLOW_RATE SLOW_OVERHEAD SLOW_JITTER DEVICE
write_job() {
  cat > "$folder/$1.toml" << EOF
[job]
max_epochs = 2
evaluate_every = 2
[model]
kind = "mlp"
hidden = [256, 256]
[data]
kind = "synthetic"
samples = 131072
features = 64
[optimizer]
lr = 0.02
[batch]
global = 8192
[cluster]
deadline_s = 60
[cluster.link]
bandwidth = "$(goodput $fast_mbit)B/s"
latency_s = 0.0001
[cluster.server]
bandwidth = "$(goodput $((fast_mbit + slow_mbit)))B/s"
[[cluster.node]]
name = "fast"
device = "$8"
samples_per_second = $2
overhead_s = $3
jitter = $4
[[cluster.node]]
name = "slow"
device = "$8"
samples_per_second = $5
overhead_s = $6
jitter = $7
[cluster.node.link]
bandwidth = "$(goodput $slow_mbit)B/s"
EOF
}
write_job job 1000 0 0 1000 0 0 cpu
head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' > "$folder/token"

# in_machine NAME COMMAND...: runs it there, with its share of the processor.
in_machine() {
  name=$1; shift
  set -- ip netns exec "$id-$name" env OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$@"
  [ ! -d "$cgroups/$id-$name" ] || set -- sh -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$cgroups/$id-$name" "$@"
  exec "$@"
}

# train STRATEGY: trains with real processes to the end.
train() {
  run=$folder/$1
  in_machine chief "$motley" chief "$folder/job.toml" --strategy "$1" --listen "10.77.0.1:$port" --token-file "$folder/token" \
    --out "$run" --json > "$run.json" 2> "$folder/chief-$1.log" &
  chief=$!
  pids="$pids $chief"
  in_machine fast "$motley" worker --join "10.77.0.1:$port" --node fast --device cpu --token-file "$folder/token" 2> "$folder/fast-$1.log" &
  pids="$pids $!"
  in_machine slow "$motley" worker --join "10.77.0.1:$port" --node slow --device cpu --token-file "$folder/token" 2> "$folder/slow-$1.log" &
  pids="$pids $!"
  for pid in $pids; do wait "$pid"; done
  pids=
}

# number KEY < JSON: a value of the object. worker NODE KEY < JSON: a value of that worker's row in per_worker.
number() { grep -o "\"$1\":[-0-9.eE+]*" | head -n 1 | cut -d: -f2; }
worker() { grep -o "{\"node\":\"$1\"[^}]*}" | number "$2"; }

# Measurements of a device in a run, NODE: "seconds of a step, samples of a step, deviation of the logarithm of a step's seconds".
device() {
  steps=$(worker "$1" steps < "$run.json") samples=$(worker "$1" samples < "$run.json") compute=$(worker "$1" compute_s < "$run.json")
  tid=$(grep -o "\"tid\":[0-9]*,\"args\":{\"name\":\"$1 " "$run/trace.json" | head -n 1 | grep -o '[0-9]*' | head -n 1)
  grep '"name":"compute"' "$run/trace.json" | grep "\"tid\":$tid," | grep -o '"dur":[0-9.]*' | cut -d: -f2 |
    awk -v s="$compute" -v n="$steps" -v b="$samples" '
      $1 > 0 { k++; x = log($1); sum += x; squares += x * x }
      END { mean = k ? sum / k : 0; v = k ? squares / k - mean * mean : 0; printf "%g %g %g", s / n, b / n, (v > 0 ? sqrt(v) : 0) }'
}

failed=0
for strategy in bsp lb-bsp; do
  train $strategy
  for node in fast slow; do eval "${node}_$(echo $strategy | tr -d -)='$(device $node)'"; done
done

# A step takes overhead + samples / rate. Two runs with different batches give both; with equal batches all time is attributed to the rate.
# solve BSP_SECONDS BSP_BATCH BSP_JITTER LB_SECONDS LB_BATCH LB_JITTER: "rate overhead"
solve() {
  awk -v t1="$1" -v b1="$2" -v t2="$4" -v b2="$5" 'BEGIN {
    o = 0; unlike = b1 > 1.25 * b2 || b2 > 1.25 * b1
    if (unlike) o = (t1 * b2 - t2 * b1) / (b2 - b1)
    if (o < 0) o = 0
    if (o > 0.9 * t1) o = 0
    if (o > 0.9 * t2) o = 0
    printf "%.1f %.6f", (b1 / (t1 - o) + b2 / (t2 - o)) / 2, o }'
}
fast=$(solve $fast_bsp $fast_lbbsp)
slow=$(solve $slow_bsp $slow_lbbsp)
echo "fast: samples/s and overhead $fast; slow: $slow"

for strategy in bsp lb-bsp; do
  key=$(echo $strategy | tr -d -)
  eval "set -- \$fast_$key"; fast_jitter=$3
  eval "set -- \$slow_$key"; slow_jitter=$3
  write_job "simulated" $fast "$fast_jitter" $slow "$slow_jitter" emulated
  "$motley" simulate "$folder/simulated.toml" --strategy $strategy --json > "$folder/simulated.json"
  real=$(number samples_per_second < "$folder/$strategy.json")
  virtual=$(number samples_per_second < "$folder/simulated.json")
  awk -v s=$strategy -v r="$real" -v v="$virtual" -v t=$tolerance 'BEGIN {
    off = 100 * (v - r) / r
    printf "%-7s real %8.1f samples/s, simulated %8.1f samples/s: %+.1f %%\n", s, r, v, off
    exit off < -t || off > t }' || failed=1
done
[ $failed -eq 0 ] || { echo "expected both within $tolerance %"; exit 1; }
