// What a desk does before its worker says Hello: a few steps for nothing, so that the device's libraries are loaded and it is known what a
// step costs it and what a sample.
#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/step_executor.h"

namespace motley::runtime {

void StepExecutor::warm_up(std::function<void(std::optional<cluster::Affine>)> then) {
  thread_.post([this, then = std::move(then)] {
    std::optional<cluster::Affine> batcher;
    try {
      if (setup_.emulated && setup_.batch_multiple > 1) batcher = setup_.emulated->cost();
      if (setup_.usual > 0) batcher = measured();
    } catch (const std::exception&) {  // what cannot be done cold cannot be done warm: the first step will tell
    }
    boost::asio::post(event_loop_, [alive = alive_, then, batcher] {
      if (*alive) then(batcher);
    });
  });
}

/// The usual size and half of it tell what a step costs and what a sample. Others warm up beside us: until it gets no faster.
cluster::Affine StepExecutor::measured() {
  const auto best_of = [&](std::uint64_t size) {
    constexpr int most_tries = 20;
    constexpr int no_faster = 4;  // in a row
    constexpr double faster = 0.97;
    try_out(size);  // cold
    double best = std::numeric_limits<double>::infinity();
    for (int tries = 0, in_vain = 0; tries < most_tries && in_vain < no_faster; ++tries) {
      const double took = seconds(try_out(size));
      in_vain = took < faster * best ? 0 : in_vain + 1;
      best = std::min(best, took);
    }
    note_batch_size(size);
    return best;
  };
  const std::uint64_t half = setup_.usual / 2 / std::max(setup_.batch_multiple, 1U) * std::max(setup_.batch_multiple, 1U);
  const double whole = best_of(setup_.usual);
  if (half == 0) return {0, whole / setup_.usual};
  constexpr double most_fixed = 0.5;  // of a step: two sizes tell it badly
  const double slope = (whole - best_of(half)) / static_cast<double>(setup_.usual - half);
  const double fixed = std::clamp(whole - slope * setup_.usual, 0.0, most_fixed * whole);
  return {fixed, (whole - fixed) / setup_.usual};
}

/// A step for nothing, from and to the memory that real ones use. How long it took.
Duration StepExecutor::try_out(std::uint64_t size) {
  const SharedBuffer values = make_shareable_buffer(setup_.layout.values);
  const SharedBuffer out = make_shareable_buffer(setup_.layout.values);
  std::fill(values->floats().begin(), values->floats().end(), 0.0F);
  std::vector<std::uint32_t> samples(std::min(size, setup_.epoch_samples));
  std::iota(samples.begin(), samples.end(), 0U);
  NoStreaming still;
  LocalSgd* const steps = setup_.replica.local_steps ? setup_.source->local_sgd() : nullptr;
  const auto since = std::chrono::steady_clock::now();
  if (steps != nullptr) {
    steps->begin(values->floats());
    steps->begin_round();
    steps->step(samples, {});
    steps->delta(out->floats(), nullptr);
  } else {
    setup_.source->gradient(values->floats(), samples, out->floats(), still);
  }
  return std::chrono::steady_clock::now() - since;
}

}  // namespace motley::runtime
