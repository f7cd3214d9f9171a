// The parameters of one pull while they are being received: the event loop fills in slices, the computing thread waits for them.
#pragma once
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/step_io.h"
#include "runtime/buffer.h"
#include "store/layout.h"
#include "store/local_model.h"

namespace motley::runtime {

/// Thread-safe. hand_over() belongs to the computing thread.
class IncomingParameters {
 public:
  IncomingParameters(const store::Layout& layout, SharedBuffer buffer);
  [[nodiscard]] Buffer& buffer() { return *buffer_; }
  /// This slice is in the buffer. With 32 bits it holds values; with fewer, encoded from where its floats would begin, the change to the
  /// values of `before`, or, if that is null, the values rounded to so many bits.
  void arrived(SliceId slice, std::uint8_t bits = 32, const std::shared_ptr<IncomingParameters>& before = nullptr);
  /// Calls `each` with everything that turns the values handed over before into those of this slice, each only once. The slice must have
  /// arrived.
  void hand_over(std::size_t slice, const std::function<void(const IncomingValues&)>& each);
  /// The same for all slices that overlap [first, last).
  void hand_over(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each);
  /// When the slice arrived.
  [[nodiscard]] std::chrono::steady_clock::time_point when(SliceId slice);
  [[nodiscard]] bool has(SliceId slice);
  /// Whether all slices that overlap [first, last) have arrived, and the pull is not cancelled.
  [[nodiscard]] bool has(std::uint64_t first, std::uint64_t last);
  /// Whether every slice has arrived.
  [[nodiscard]] bool complete();
  /// Waits until all slices that overlap [first, last) have arrived; false: cancelled.
  bool await(std::uint64_t first, std::uint64_t last);
  void cancel();
  /// Appends the slices that have arrived and are not in `taken` (by SliceId; updated) to `out`, neighbours merged.
  void take(std::vector<bool>& taken, std::vector<store::IncomingUpdates::Piece>& out);

 private:
  const store::Layout& layout_;
  SharedBuffer buffer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_;
  std::vector<std::chrono::steady_clock::time_point> when_;
  std::vector<std::uint8_t> bits_;
  std::vector<bool> change_;                    // to values that were handed over before
  std::shared_ptr<IncomingParameters> before_;  // null: no slice is a change, or all were handed over
  std::vector<bool> handed_over_;               // of the computing thread
  std::size_t left_;                            // slices not handed over
  bool cancelled_ = false;
};

}  // namespace motley::runtime
