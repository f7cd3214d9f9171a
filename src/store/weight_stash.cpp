#include "store/weight_stash.h"

#include <utility>

namespace motley::store {

bool WeightStash::reuse(const PullId& sent, Version version, double rho) {
  const auto found = ring_.find({version, rho});
  if (found == ring_.end()) return false;
  held_[sent.worker] = {sent.step, found->second};
  free_unused();
  return true;
}

void WeightStash::keep(const PullId& sent, Version version, double rho, Floats values) {
  auto kept = std::make_shared<Floats>(std::move(values));
  ring_.insert_or_assign({version, rho}, kept);
  held_[sent.worker] = {sent.step, std::move(kept)};
  free_unused();
}

Floats WeightStash::take_buffer(std::size_t values) {
  Floats buffer = std::exchange(spare_, {});
  buffer.resize(values);
  return buffer;
}

void WeightStash::forget(WorkerId worker) {
  held_.erase(worker);
  free_unused();
}

void WeightStash::free_unused() {
  std::erase_if(ring_, [&](const auto& entry) {
    if (entry.second.use_count() > 1) return false;
    spare_ = std::move(*entry.second);
    return true;
  });
  while (ring_.size() > max_versions_) {
    std::erase_if(held_, [&](const auto& entry) { return entry.second.values == ring_.begin()->second; });
    ring_.erase(ring_.begin());
  }
}

std::span<const float> WeightStash::find(const PullId& sent) const {
  const auto found = held_.find(sent.worker);
  if (found == held_.end() || found->second.step != sent.step) return {};
  return *found->second.values;
}

std::size_t WeightStash::bytes() const {
  std::size_t values = 0;
  for (const auto& [key, kept] : ring_) values += kept->size();
  return values * sizeof(float);
}

}  // namespace motley::store
