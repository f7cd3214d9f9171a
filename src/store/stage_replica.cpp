#include "store/stage_replica.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "store/constants.h"

namespace motley::store {

StageReplica::StageReplica(const StageReplicaOptions& options, std::unique_ptr<StageSource> source, StagePart part)
    : options_(options),
      batching_{options.total_samples, options.samples, options.micro_batches},
      source_(std::move(source)),
      epochs_(options.epoch_samples, options.seed),
      values_(std::make_shared<const std::vector<float>>(std::move(part.values))),
      optimizer_(options.optimizer, options.parameters) {
  if (!part.first.empty()) optimizer_.restore(part.first, part.second, part.updates);
}

StagePart StageReplica::part() const {
  const auto copy = [](std::span<const float> from) { return std::vector<float>(from.begin(), from.end()); };
  return {*values_, copy(optimizer_.first()), copy(optimizer_.second()), optimizer_.updates()};
}

/// Mini-batches follow each other in the permutations of the epochs.
const std::vector<std::uint32_t>& StageReplica::samples_of(std::uint64_t micro) {
  const Batching::Positions positions = batching_.of_micro(micro);
  std::uint64_t at = positions.first;
  std::uint64_t left = positions.size();
  Lease lease;
  while (left > 0) {
    const std::uint64_t epoch = at / options_.epoch_samples;
    const std::uint64_t first = at % options_.epoch_samples;
    const std::uint64_t count = std::min(left, options_.epoch_samples - first);
    lease.ranges.push_back({static_cast<std::uint32_t>(epoch), first, first + count});
    at += count;
    left -= count;
  }
  return epochs_.samples_of(lease);
}

std::size_t StageReplica::old_versions() const {
  std::set<const std::vector<float>*> old;
  for (const auto& [micro, values] : used_)
    if (values != values_) old.insert(values.get());
  return old.size();
}

void StageReplica::begin(std::uint64_t micro, std::uint32_t late, double rate) {
  if (late == 0 || !options_.predicts) {
    used_[micro] = values_;
    return;
  }
  if (!predicted_) {
    auto ahead = std::make_shared<std::vector<float>>(*values_);
    optimizer_.look_ahead(std::span(*values_).first(options_.parameters), options_.optimizer.momentum, rate,
                          std::span(*ahead).first(options_.parameters));
    predicted_ = std::move(ahead);
  }
  used_[micro] = predicted_;
}

StepResult StageReplica::forward(std::uint64_t micro, const Activation& input, Activation& output) {
  static const std::vector<std::uint32_t> none;
  return source_->forward(micro, *used_.at(micro), options_.reads_samples ? samples_of(micro) : none, input, output);
}

void StageReplica::input_gradient(std::uint64_t micro, const Activation& output_gradient, Activation& input_gradient) {
  source_->input_gradient(micro, output_gradient, input_gradient);
}

void StageReplica::weight_gradient(std::uint64_t micro) {
  std::vector<float>& sum = gradients_[micro / options_.micro_batches];
  sum.resize(values_->size());
  source_->weight_gradient(micro, static_cast<double>(batching_.of_micro(micro).size()) / static_cast<double>(options_.samples), sum);
  used_.erase(micro);
}

void StageReplica::clip(std::vector<float>& gradient) {
  double squares = 0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(squares);
  if (norm_ == 0) norm_ = norm;
  const double factor = norm > clip_multiple * norm_ ? clip_multiple * norm_ / norm : 1;
  if (factor < 1)
    for (float& g : gradient) g = static_cast<float>(g * factor);
  norm_ = clip_norm_decay * norm_ + (1 - clip_norm_decay) * factor * norm;
}

void StageReplica::commit(std::uint64_t mini, double rate) {
  const std::size_t parameters = options_.parameters;
  std::vector<float> gradient = std::move(gradients_.at(mini));
  gradients_.erase(mini);
  std::vector<float> changes(gradient.begin() + static_cast<std::ptrdiff_t>(parameters), gradient.end());
  gradient.resize(parameters);
  if (options_.clips) clip(gradient);
  // A mini-batch below the global batch has proportionally less weight; a smaller last one is a smaller sum already.
  const double global_batch = static_cast<double>(options_.global_batch);
  const double unit = static_cast<double>(options_.samples) / global_batch;
  if (unit != 1)
    for (float& g : gradient) g = static_cast<float>(g * unit);
  const double share = static_cast<double>(batching_.size_of(mini)) / global_batch;
  auto next = std::make_shared<std::vector<float>>(*values_);
  optimizer_.update(std::span(*next).first(parameters), gradient, rate, options_.optimizer.momentum, share);
  for (std::size_t i = 0; i < changes.size(); ++i) (*next)[parameters + i] += changes[i];
  values_ = std::move(next);
  predicted_.reset();
}

}  // namespace motley::store
