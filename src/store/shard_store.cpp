#include "store/shard_store.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace motley::store {
namespace {

// 16 KiB of sums: with as much of one part beside it, fits the first-level cache of every machine we meet.
constexpr std::size_t block_values = 4096;
using Block = std::array<float, block_values>;

void set_to(float weight, const float* __restrict part, std::span<float> sum) {
  float* const out = sum.data();
  for (std::size_t i = 0; i < sum.size(); ++i) out[i] = weight * part[i];
}

void add_to(float weight, const float* __restrict part, std::span<float> sum) {
  float* const out = sum.data();
  for (std::size_t i = 0; i < sum.size(); ++i) out[i] += weight * part[i];
}

/// sum[i] = weighted sum of the parts at flat position first + i.
void reduce(std::span<const WeightedPart> parts, std::size_t first, std::span<float> sum) {
  set_to(static_cast<float>(parts[0].weight), parts[0].flat.data() + first, sum);
  for (const WeightedPart& part : parts.subspan(1)) add_to(static_cast<float>(part.weight), part.flat.data() + first, sum);
}

}  // namespace

std::vector<ShardStore::Run> ShardStore::runs_of(const Layout& layout, ServerId server) {
  std::vector<Run> runs;
  std::size_t local = 0;
  for (SliceId id : layout.of(server)) {
    const Slice& slice = layout[id];
    if (!runs.empty() && runs.back().kind == slice.kind && runs.back().flat + runs.back().count == slice.offset)
      runs.back().count += slice.count;
    else
      runs.push_back({slice.offset, local, slice.count, slice.kind});
    local += slice.count;
  }
  return runs;
}

std::size_t ShardStore::parameters_in(std::span<const Run> runs) {
  std::size_t end = 0;
  for (const Run& run : runs)
    if (run.kind == SliceKind::parameter) end = run.local + run.count;
  return end;
}

ShardStore::ShardStore(const Layout& layout, ServerId server, const OptimizerSpec& spec, std::span<const float> initial_flat)
    : flat_values_(layout.values), runs_(runs_of(layout, server)), optimizer_(spec, parameters_in(runs_)) {
  check(initial_flat.size() == flat_values_, "the initial values cover the whole flat buffer");
  for (const Run& run : runs_) values_.insert(values_.end(), initial_flat.begin() + run.flat, initial_flat.begin() + run.flat + run.count);
}

void ShardStore::apply(const Update& wanted, std::span<const WeightedPart> parts) {
  check(!parts.empty(), "an update has at least one part");
  for (const WeightedPart& part : parts) check(part.flat.size() == flat_values_, "a part covers the whole flat buffer");
  Update update = wanted;
  if (update.kind == UpdateKind::apart && optimizer_.updates() == 0) update.kind = UpdateKind::gradient;  // there is no momentum to spare
  if (update.kind == UpdateKind::gradient) {
    optimizer_.begin_update();
    rate_ = update.rate;
  }
  for (const Run& run : runs_) apply(update, parts, run);
  version_ = version_.next();
}

void ShardStore::apply(const Update& update, std::span<const WeightedPart> parts, const Run& run) {
  const bool optimized = update.kind != UpdateKind::delta && run.kind == SliceKind::parameter;
  const bool compensated = optimized && update.compensation > 0;
  Block block;
  for (std::size_t done = 0; done < run.count; done += block_values) {
    const std::span<float> sum(block.data(), std::min(block_values, run.count - done));
    const std::span<float> held(values_.data() + run.local + done, sum.size());
    if (compensated)
      compensate(update, parts, run, done, sum);
    else
      reduce(parts, run.flat + done, sum);
    if (optimized && update.kind == UpdateKind::apart)
      optimizer_.update_apart_piece(run.local + done, held, sum, update.rate, update.momentum, update.share);
    else if (optimized)
      optimizer_.update_piece(run.local + done, held, sum, update.rate, update.momentum, update.share);
    else
      add_to(1.0F, sum.data(), held);
  }
}

void ShardStore::compensate(const Update& update, std::span<const WeightedPart> parts, const Run& run, std::size_t done,
                            std::span<float> sum) const {
  const auto lambda = static_cast<float>(update.compensation);
  std::fill(sum.begin(), sum.end(), 0.0F);
  for (const WeightedPart& part : parts) {
    const std::span<const float> base = bases_.find(part.base);
    const float* const g = part.flat.data() + run.flat + done;
    const auto weight = static_cast<float>(part.weight);
    if (base.empty()) {
      add_to(weight, g, sum);
      continue;
    }
    const float* const then = base.data() + run.local + done;
    const float* const now = values_.data() + run.local + done;
    for (std::size_t i = 0; i < sum.size(); ++i) {
      const float bound = std::abs(g[i]);
      sum[i] += weight * (g[i] + std::clamp(lambda * g[i] * g[i] * (now[i] - then[i]), -bound, bound));
    }
  }
}

void ShardStore::keep(const Sent& sent, double rho) {
  if (bases_.keep_again(sent, version_, rho)) return;
  std::vector<float> values(optimizer_.first().size());
  for (const Run& run : runs_)
    if (run.kind == SliceKind::parameter)
      optimizer_.look_ahead({values_.data() + run.local, run.count}, rho, rate_, std::span(values).subspan(run.local, run.count),
                            run.local);
  bases_.keep(sent, version_, rho, std::move(values));
}

double ShardStore::along(std::span<const float> flat) const {
  check(flat.size() == flat_values_, "a contribution covers the whole flat buffer");
  double sum = 0;
  for (const Run& run : runs_) {
    if (run.kind != SliceKind::parameter) continue;
    for (std::size_t i = 0; i < run.count; ++i) sum += static_cast<double>(flat[run.flat + i]) * optimizer_.first()[run.local + i];
  }
  return sum;
}

void ShardStore::snapshot(double rho, std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "a snapshot is written into a whole flat buffer");
  for (const Run& run : runs_)
    if (run.kind == SliceKind::parameter)
      optimizer_.look_ahead({values_.data() + run.local, run.count}, rho, rate_, flat_out.subspan(run.flat, run.count), run.local);
    else
      copy_out(run, flat_out);
}

void ShardStore::values(std::span<float> flat_out) const {
  check(flat_out.size() == flat_values_, "values are written into a whole flat buffer");
  for (const Run& run : runs_) copy_out(run, flat_out);
}

void ShardStore::copy_out(const Run& run, std::span<float> flat_out) const {
  std::copy_n(values_.data() + run.local, run.count, flat_out.data() + run.flat);
}

void ShardStore::moments(Moments& out) const {
  out.first.resize(flat_values_);
  if (!optimizer_.second().empty()) out.second.resize(flat_values_);
  out.updates = optimizer_.updates();
  out.rate = rate_;
  for (const Run& run : runs_) {
    if (run.kind != SliceKind::parameter) continue;
    std::copy_n(optimizer_.first().data() + run.local, run.count, out.first.data() + run.flat);
    if (!out.second.empty()) std::copy_n(optimizer_.second().data() + run.local, run.count, out.second.data() + run.flat);
  }
}

void ShardStore::restore(const Moments& moments, Version version) {
  check(moments.first.size() == flat_values_, "moments cover the whole flat buffer");
  std::vector<float> first(optimizer_.first().size());
  std::vector<float> second(optimizer_.second().size());
  for (const Run& run : runs_) {
    if (run.kind != SliceKind::parameter) continue;
    std::copy_n(moments.first.data() + run.flat, run.count, first.data() + run.local);
    if (!second.empty()) std::copy_n(moments.second.data() + run.flat, run.count, second.data() + run.local);
  }
  optimizer_.restore(first, second, moments.updates);
  rate_ = moments.rate;
  version_ = version;
}

}  // namespace motley::store
