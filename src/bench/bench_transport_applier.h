// The server's arithmetic in the transport benchmark: sums gradients and applies updates.
#pragma once
#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "runtime/buffer.h"
#include "store/optimizer.h"

namespace motley::bench {

inline constexpr std::size_t slice_values = 1U << 18;
inline constexpr std::size_t slice_bytes = slice_values * sizeof(float);
inline constexpr std::size_t slices = 128;
inline constexpr std::size_t values = slices * slice_values;
inline constexpr std::size_t piece_values = 4096;  // summed and applied while in the first-level cache

/// The values of the model. When weights and momentum of 128 MiB are adjacent, they are 2^27 + 2^12 bytes apart, and at this distance an
/// update takes three times as long on AMD's Zen; presumably such addresses share the tag of the first-level cache's way predictor (Lipp et
/// al., Take A Way, AsiaCCS 2020). So each array begins at a different offset within a page; 0 is the optimizer's.
class Flat {
 public:
  Flat(float value, std::size_t place) : memory_(values + page_values, /*shareable=*/true), skipped_(place * 320 % page_values) {
    std::fill(all().begin(), all().end(), value);
  }
  std::span<float> all() { return memory_.floats().subspan(skipped_, values); }
  std::span<float> slice(SliceId slice) { return all().subspan(slice.value * slice_values, slice_values); }

 private:
  static constexpr std::size_t page_values = 4096 / sizeof(float);
  runtime::Buffer memory_;  // shared memory once a peer supports borrowing
  std::size_t skipped_;
};

/// Applies slices on its own thread in the order in which they became complete: sums the parts in the workers' order, then SGD with
/// momentum.
class Applier {
 public:
  using Applied = std::function<void(SliceId)>;
  Applier(std::size_t workers, Applied applied) : applied_(std::move(applied)), optimizer_({}, values) {
    for (std::size_t w = 0; w < workers; ++w) gradients.push_back(std::make_unique<Flat>(0.0F, 2 + w));
    for (std::uint32_t s = 0; s < slices; ++s)
      for (const auto& gradient : gradients) parts[s].push_back(gradient->slice({s}).data());
    optimizer_.begin_update();
    thread_ = std::thread([this] { apply_for_ever(); });
  }
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier() {
    give({});
    thread_.join();
  }

  Flat weights{1.0F, 1};
  std::vector<std::unique_ptr<Flat>> gradients;  // one per worker
  /// Where each worker's part of a slice is read: in `gradients` or in the worker's memory. Not changed while the slice is applied.
  std::array<std::vector<const float*>, slices> parts;

  void give(std::optional<SliceId> slice) {
    const std::lock_guard lock(mutex_);
    complete_.push_back(slice);
    changed_.notify_one();
  }

 private:
  void apply_for_ever() {
    while (const std::optional<SliceId> slice = next()) {
      for (std::size_t i = 0; i < slice_values; i += piece_values) apply_piece(*slice, i);
      applied_(*slice);
    }
  }

  std::optional<SliceId> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !complete_.empty(); });
    const std::optional<SliceId> slice = complete_.front();
    complete_.pop_front();
    return slice;
  }

  void apply_piece(SliceId slice, std::size_t within) {
    const std::vector<const float*>& from = parts[slice.value];
    const std::size_t first = slice.value * slice_values + within;
    std::span<const float> sum(from[0] + within, piece_values);
    for (std::size_t w = 1; w < from.size(); ++w) {
      const float* part = from[w] + within;
      for (std::size_t i = 0; i < piece_values; ++i) sum_[i] = sum[i] + part[i];
      sum = sum_;
    }
    optimizer_.update_piece(first, weights.all().subspan(first, piece_values), sum, 0.01, 0.9);
  }

  Applied applied_;
  store::Optimizer optimizer_;
  std::array<float, piece_values> sum_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<SliceId>> complete_;  // none: end
  std::thread thread_;
};

}  // namespace motley::bench
