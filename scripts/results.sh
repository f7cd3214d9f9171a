#!/usr/bin/env bash
# Makes docs/results/baselines.md and its pictures from scratch: one comparison per job given, each beside the command that makes it again.
# usage: STRATEGIES=a,b,c scripts/results.sh examples/CELL.toml...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
(($#)) || { echo "results: name at least one job, such as examples/4421-cheap.toml" >&2; exit 2; }

to=docs/results
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
mkdir -p "$to"
{
  echo "# The baselines on the standard cells"
  echo
  echo "Simulated time, real gradients, Fashion-MNIST, test set, seeds 0 to 4, Nesterov for everyone, one learning rate. Made by \`make results\`;"
  echo "each table names its own command. How a cell is built stands in its file."
} >"$made/baselines.md"
for job in "$@"; do
  cell=$(basename "$job" .toml)
  command="motley compare $job --strategies $STRATEGIES --seeds 5"
  echo "results: $command" >&2
  build/motley compare "$job" --strategies "$STRATEGIES" --seeds 5 --out "$made/$cell" >/dev/null
  cp "$made/$cell/accuracy.svg" "$to/$cell.svg"
  {
    printf '\n## %s\n\n`%s`\n\n![accuracy over time](%s.svg)\n\n' "$cell" "$command" "$cell"
    cat "$made/$cell/table.md"
  } >>"$made/baselines.md"
done
mv "$made/baselines.md" "$to/baselines.md"
echo "results: $to/baselines.md"
