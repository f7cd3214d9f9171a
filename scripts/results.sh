#!/usr/bin/env bash
# Generates pages of docs/results with their figures: one comparison per cell, each with the command that repeats it.
# usage: scripts/results.sh [baselines|hps|adaptive|grouped|multistep|adapipe]...        (default: all)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
motley=${MOTLEY:-build/motley}
to=docs/results
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$to"

# measure PAGE NAME HEADING SEEDS JOB STRATEGIES [OPTION...]: one comparison, and the head of its section on the page.
measure() {
  local page=$1 name=$2 heading=$3 seeds=$4 job=$5 strategies=$6
  shift 6
  local -a command=(compare "$job" --strategies "$strategies" --seeds "$seeds" "$@")
  echo "results: motley ${command[*]}" >&2
  "$motley" "${command[@]}" --out "$made/$name" >/dev/null
  printf '\n## %s\n\n`motley %s`\n' "$heading" "${command[*]}" >>"$made/$page.md"
}

# compare ...: the same with its figure and table.
compare() {
  measure "$@"
  cp "$made/$2/accuracy.svg" "$to/$2.svg"
  {
    printf '\n![accuracy over time](%s.svg)\n\n' "$2"
    cat "$made/$2/table.md"
  } >>"$made/$1.md"
}

# timing_only ...: the same for jobs without a model, which have no accuracy figure.
timing_only() {
  measure "$@"
  {
    echo
    cat "$made/$2/table.md"
  } >>"$made/$1.md"
}

# begin PAGE TITLE: the introduction of every page.
begin() {
  {
    echo "# $2"
    echo
    echo "Simulated time, real gradients, Fashion-MNIST, test set, seeds 0 to 4 unless a command says otherwise, Nesterov momentum for all strategies, one"
    echo "learning rate. Made by \`make results\`; each table names its own command. The cell's file says how it is built."
  } >"$made/$1.md"
}

finish() {
  mv "$made/$1.md" "$to/$1.md"
  echo "results: $to/$1.md"
}

baselines() {
  local strategies=bsp,lb-bsp,asp,asp-look,ssp,dssp,local-sgd cell
  begin baselines "The baselines on the standard cells"
  for cell in 4421-cheap 4421-heavy 4421-heavy2 4421t-cheap 4421t-heavy 2211-cheap 2211-heavy 8w-cheap 8w-heavy 8w-heavy2; do
    compare baselines $cell $cell 5 examples/$cell.toml $strategies
  done
  finish baselines
}

hps() {
  local cell
  begin hps "hps: all workers finish together, and communication overlaps with computation"
  for cell in 4421-heavy 4421t-cheap 8w-heavy 2211-cheap 4421-cheap; do
    compare hps hps-$cell $cell 5 examples/$cell.toml bsp,lb-bsp,asp,asp-look,ssp,dssp,hps
  done
  compare hps hps-parts-heavy "Effect of each part: 4421-heavy" 5 examples/4421-heavy.toml \
    lb-bsp,lb-bsp:bits=4/8,hps,hps:overlap=0,hps:overlap=1,hps:bits=32,hps:bits=8/8,hps:bits=4/8,hps:time_limited=false
  compare hps hps-parts-transients "Effect of each part: 4421t-cheap" 5 examples/4421t-cheap.toml \
    lb-bsp,lb-bsp:replan=10,lb-bsp:bits=4/8,hps,hps:overlap=1,hps:bits=32,hps:time_limited=false
  compare hps hps-cnn "A convolutional network on 4421-heavy, one epoch" 3 examples/4421-heavy.toml lb-bsp,hps \
    --set 'model.kind="cnn"' --set job.max_epochs=1
  finish hps
}

# without STRATEGY RULE...: the strategy itself, and the strategy without each single rule.
without() {
  local strategy=$1 list=$1 rule
  shift
  for rule in "$@"; do list+=,$strategy:without=$rule; done
  echo "$list"
}

adaptive() {
  begin adaptive "adaptive: straggler states, and a rule for each"
  compare adaptive adaptive-4421t-cheap 4421t-cheap 5 examples/4421t-cheap.toml \
    bsp,lb-bsp,asp,asp-look,ssp,dssp,hps,adaptive,adaptive:bits=32
  compare adaptive adaptive-8wt-cheap 8wt-cheap 5 examples/8wt-cheap.toml bsp,lb-bsp,asp-look,hps,adaptive
  compare adaptive adaptive-3s-stalls "3s-stalls: a worker that stalls for seconds" 5 examples/3s-stalls.toml bsp,lb-bsp,asp-look,hps,adaptive
  compare adaptive adaptive-parts "Effect of each rule without time-limited steps: 4421t-cheap" 5 examples/4421t-cheap.toml \
    "adaptive,$(without adaptive:time_limited=false apart soften compensate foresee)"
  compare adaptive adaptive-parts-stalls "Effect of each rule when a worker is over-stale (from 8 versions on): 3s-stalls" 5 \
    examples/3s-stalls.toml "$(without adaptive:bound_max=8 apart soften compensate foresee hold judge cancel)"
  finish adaptive
}

grouped() {
  begin grouped "grouped: groups of equally fast workers"
  compare grouped grouped-8w-heavy 8w-heavy 5 examples/8w-heavy.toml bsp,lb-bsp,asp,ssp,hps,grouped
  compare grouped grouped-4421-cheap 4421-cheap 5 examples/4421-cheap.toml bsp,lb-bsp,asp,hps,grouped,grouped:bits=32
  compare grouped grouped-4421t-cheap 4421t-cheap 5 examples/4421t-cheap.toml bsp,lb-bsp,hps,grouped
  compare grouped grouped-parts "Effect of each rule: 4421-cheap, 32 bits" 5 examples/4421-cheap.toml \
    "$(without grouped:bits=32 foresee rates turns hold)"
  compare grouped grouped-parts-transients "Effect of each rule: 4421t-cheap" 5 examples/4421t-cheap.toml \
    "$(without grouped foresee rates turns hold regroup),grouped:time_limited=false"
  finish grouped
}

# lanes PAGE NAME ROW: the tasks of each stage over time, for that row of the last comparison.
lanes() {
  cp "$made/$2/lanes-$3.svg" "$to/$2-lanes.svg"
  printf '\n![tasks of each stage over time](%s-lanes.svg)\n' "$2" >>"$made/$1.md"
}

# Throughput with 24 blocks, time to accuracy with eight blocks of a real network, then the effect of each part.
adapipe() {
  local cell all=naive-mp,gpipe:micro_batches=8,1f1b:micro_batches=8,pipedream,pipedream:micro_batches=8,2bw:micro_batches=8,adapipe
  local uniform=naive-mp:cut=uniform,gpipe:micro_batches=8:cut=uniform,pipedream:cut=uniform
  local -a timing=(--set 'model.kind="none"' --set model.values=400000 --set 'data.kind="none"' --set data.samples=40000
    --set job.max_epochs=1 --set 'pipeline.profile="examples/profiles/24-equal.toml"')
  local -a eight=() four turns=()
  begin adapipe "adapipe: a model cut across unlike devices, with every device busy"
  for cell in 0 1 2 3 4 5 6 7; do eight+=(--set cluster.node.$cell.jitter=0.2); done
  four=("${eight[@]:0:8}")
  for cell in 0 2 4 6; do turns+=(--set "cluster.node.$cell.group=\"left\"" --set "cluster.node.$((cell + 1)).group=\"right\""); done
  for cell in pipe4-hom-cheap pipe4-hom-heavy pipe4-4421-cheap pipe4-4421-heavy pipe8-hom-cheap pipe8-hom-heavy pipe8-8w-cheap pipe8-8w-heavy; do
    timing_only adapipe adapipe-24-$cell "24 blocks, timing only: $cell" 3 examples/$cell.toml $uniform,$all "${timing[@]}"
    lanes adapipe adapipe-24-$cell 9
    local -a jitter=("${eight[@]}")
    [[ $cell == pipe8-* ]] || jitter=("${four[@]}")
    timing_only adapipe adapipe-24j-$cell "24 blocks, timing only, with jitter: $cell" 3 examples/$cell.toml $uniform,$all "${timing[@]}" \
      "${jitter[@]}"
  done
  for cell in pipe4-hom-heavy pipe4-4421-heavy pipe8-hom-heavy pipe8-8w-heavy; do
    compare adapipe adapipe-$cell "Eight blocks that learn: $cell" 5 examples/$cell.toml $uniform,pipedream:micro_batches=8:cut=uniform,adapipe
  done
  for cell in 0.01 0.03; do
    compare adapipe adapipe-rate-$cell "Synchronous and ahead, rate $cell: pipe4-hom-heavy" 5 examples/pipe4-hom-heavy.toml \
      "1f1b:lr=$cell:micro_batches=8,adapipe:lr=$cell" --set job.max_epochs=3
  done
  compare adapipe adapipe-fast "At three times the learning rate" 3 examples/pipe4-hom-heavy.toml \
    "adapipe:lr=0.06,$(without adapipe:lr=0.06 predict clipping soften | cut -d, -f2-)" --set job.max_epochs=3
  compare adapipe adapipe-parts "Effect of each part: pipe4-hom-heavy" 3 examples/pipe4-hom-heavy.toml \
    "$(without adapipe predict clipping soften defer caps)" --set job.max_epochs=3
  for cell in 4 1; do
    timing_only adapipe adapipe-slices-$cell "Effect of slices ($cell to a micro-batch) where stages share uplinks: pipe8-8w-heavy, nodes alternating on two hosts" 3 \
      examples/pipe8-8w-heavy.toml pipedream:cut=uniform,2bw:micro_batches=8:cut=uniform,adapipe:cut=uniform,adapipe "${timing[@]}" "${eight[@]}" \
      "${turns[@]}" --set pipeline.slices=$cell
  done
  finish adapipe
}

multistep() {
  local cell
  begin multistep "multistep: several local steps and a late, corrected merge, with communication overlapped"
  for cell in 4421-heavy 4421-heavy2 8w-heavy 8w-cheap; do
    compare multistep multistep-$cell $cell 5 examples/$cell.toml \
      bsp,lb-bsp,local-sgd:steps=4,local-sgd:steps=8,local-sgd:steps=16,hps,multistep
  done
  compare multistep multistep-interval "Effect of adapting the interval: 4421-heavy" 5 examples/4421-heavy.toml \
    multistep,multistep:steps=2,multistep:steps=4,multistep:steps=8,multistep:steps=16,multistep:steps=32
  compare multistep multistep-correction "Effect of the correction: 4421-heavy" 5 examples/4421-heavy.toml \
    multistep:correction=0,multistep:correction=0.25,multistep:correction=0.5,multistep:correction=1
  compare multistep multistep-correction-32 "The same with rounds of 32 steps" 5 examples/4421-heavy.toml \
    multistep:steps=32:correction=0,multistep:steps=32,multistep:steps=32:correction=0.5,multistep:steps=32:correction=1
  compare multistep multistep-parts "Effect of overlap and few bits: 4421-heavy" 5 examples/4421-heavy.toml \
    multistep,multistep:overlap=0,multistep:bits=32,multistep:bits=4/8
  compare multistep multistep-by-label "Shards by label, four equal workers: effect of the control variate" 5 examples/2211-cheap.toml \
    bsp,local-sgd,multistep,multistep:control_variate=true --set 'data.split="by-label"' --set cluster.node.0.samples_per_second=250
  compare multistep multistep-priority "Slices by priority, parameters received during the forward pass: vgg11-heavy" 3 examples/vgg11-heavy.toml bsp,lb-bsp
  compare multistep multistep-fifo "The same with whole tensors, first in, first out" 3 examples/vgg11-heavy.toml bsp,lb-bsp \
    --set 'wire.unit="tensor"' --set 'wire.order="fifo"'
  # Small networks on small pictures, if CIFAR10=folder or CIFAR100=folder is set; CIFAR_NOTE says it when the data is incomplete.
  for cell in cifar10 cifar100; do
    local folder=${cell^^}
    [[ -n ${!folder:-} ]] || continue
    compare multistep multistep-$cell "resnet20 of 8 channels on $cell${CIFAR_NOTE:+ ($CIFAR_NOTE)}, a shortened schedule of 6 epochs: 4421-heavy" 3 examples/4421-heavy.toml \
      bsp,lb-bsp,local-sgd,multistep --set 'model.kind="resnet20"' --set model.width=8 --set "data.kind=\"$cell\"" --set "data.path=\"${!folder}\"" \
      --set optimizer.lr=0.05 --set job.max_epochs=6 --set job.target_accuracy=0.3
  done
  finish multistep
}

(($#)) || set -- baselines hps adaptive grouped multistep adapipe
for page in "$@"; do
  case $page in
    baselines | hps | adaptive | grouped | multistep | adapipe) "$page" ;;
    *) echo "results: found \"$page\", expected baselines, hps, adaptive, grouped, multistep or adapipe" >&2; exit 2 ;;
  esac
done
