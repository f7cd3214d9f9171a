#include "runtime/update_engine.h"

#include <algorithm>
#include <span>
#include <utility>

#include "runtime/constants.h"

namespace motley::runtime {
namespace {

std::vector<store::WeightedPart> weighted(const std::vector<wire::Part>& parts, const std::vector<Contribution>& contributions) {
  std::vector<store::WeightedPart> weighted;
  for (std::size_t i = 0; i < parts.size(); ++i)
    weighted.push_back({std::as_const(*contributions[i].flat).floats(),
                        parts[i].weight,
                        {parts[i].worker, parts[i].parameters},
                        contributions[i].bf16_transfer});
  return weighted;
}

}  // namespace

UpdateEngine::UpdateEngine(const store::Layout& layout, StoreThread& store_thread, ReceiveBuffers& contributions, SnapshotCache& snapshots,
                           OnWritten on_written)
    : layout_(layout),
      store_thread_(store_thread),
      contributions_(contributions),
      snapshots_(snapshots),
      on_written_(std::move(on_written)) {}

void UpdateEngine::commit(const protocol::Commit& commit) {
  flush();
  Pending pending{commit, {}, {}};
  for (const wire::Part& part : commit.update.parts) pending.parts.push_back(contributions_.take({part.worker, part.step}));
  if (commit.speculated) pending.snapshot = std::exchange(expected_snapshot_, std::nullopt);
  snapshots_.begin_version(commit.update.version, pending.snapshot);
  pending_ = std::move(pending);
  if (commit.speculated) return flush();
  store_thread_.deliver([this] { flush(); });
}

void UpdateEngine::expect_pull() {
  if (!pending_) return;
  const wire::Apply& update = pending_->commit.update;
  pending_->snapshot = make_update_snapshot(layout_, update.version, snapshots_.predicted_format(update));
  snapshots_.add(*pending_->snapshot);
}

void UpdateEngine::flush() {
  if (!pending_) return;
  contributions_.flush_decoding();
  const protocol::Commit commit = pending_->commit;
  apply(*std::exchange(pending_, std::nullopt));
  begin_speculation(commit);
}

void UpdateEngine::apply(Pending pending) {
  store_thread_.run([this, &thread = store_thread_, pending = std::move(pending)](store::ShardStore& store) {
    const auto written = [&](std::span<const SliceId> slices) {
      if (!pending.snapshot || slices.empty()) return;
      thread.deliver([this, snapshot = pending.snapshot->snapshot, done = std::vector<SliceId>(slices.begin(), slices.end())] {
        on_written_(snapshot, done);
      });
    };
    const wire::Apply& update = pending.commit.update;
    const std::vector<store::WeightedPart> parts = weighted(update.parts, pending.parts);
    if (pending.commit.speculated) return store.commit(parts, written);
    store.apply({update.kind, update.rate, update.momentum, update.share, update.compensation}, parts,
                pending.snapshot ? pending.snapshot->key.format : store::SnapshotFormat(),
                pending.snapshot ? pending.snapshot->snapshot->flat->floats() : std::span<float>(), written);
  });
}

/// Drops the speculation on an update that was expected before this one.
void UpdateEngine::begin_speculation(const protocol::Commit& commit) {
  expected_snapshot_.reset();
  complete_.clear();
  if (!commit.expects_next) return;
  const wire::Apply& update = commit.update;
  expected_snapshot_ = make_update_snapshot(layout_, update.version.next(), snapshots_.predicted_format(update));
  const store::Update expected{update.kind, update.next_rate, update.momentum, update.share};
  store_thread_.run([expected, next = *expected_snapshot_](store::ShardStore& store) {
    store.begin_speculation(expected, next.key.format, next.snapshot->flat->floats());
  });
}

void UpdateEngine::speculate(const protocol::Speculate& complete) {
  expected_parts_ = complete.parts;
  complete_.push_back(complete.slice);
  if (batches_in_progress_ < batches_speculated) speculate_waiting();
}

/// Speculates the most urgent of the complete slices, as many as make a batch.
void UpdateEngine::speculate_waiting() {
  if (complete_.empty()) return;
  std::vector<Contribution> contributions;
  for (const wire::Part& part : expected_parts_) {
    const Contribution* found = contributions_.find({part.worker, part.step});
    if (found == nullptr) return complete_.clear();  // discarded: the expected update will not come
    contributions.push_back(*found);
  }
  std::sort(complete_.begin(), complete_.end(), [&](SliceId a, SliceId b) { return layout_[a].priority < layout_[b].priority; });
  std::size_t values = 0;
  auto end = complete_.begin();
  while (end != complete_.end() && values < values_per_speculation) values += layout_[*end++].count;
  std::vector<SliceId> slices(complete_.begin(), end);
  complete_.erase(complete_.begin(), end);
  ++batches_in_progress_;
  contributions_.flush_decoding();
  // The snapshot that the store thread writes to is kept alive until then.
  store_thread_.run(
      [parts = expected_parts_, contributions = std::move(contributions), slices = std::move(slices),
       snapshot = expected_snapshot_->snapshot](store::ShardStore& store) { store.speculate(weighted(parts, contributions), slices); },
      [this] {
        --batches_in_progress_;
        speculate_waiting();
      });
}

}  // namespace motley::runtime
