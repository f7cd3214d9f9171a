// The parameters of one pull while their slices arrive: the event loop marks slices as arrived, the executor's thread waits for them and
// takes them.
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

class IncomingParameters {
 public:
  IncomingParameters(const store::Layout& layout, SharedBuffer buffer);
  [[nodiscard]] Buffer& buffer() { return *buffer_; }
  /// The slice is in the buffer. With 32 bits: its values. With fewer: encoded, beginning where its values would; a change of the values of
  /// `before`, or, without one, the values rounded to so many bits.
  void arrived(SliceId slice, std::uint8_t bits = 32, const std::shared_ptr<IncomingParameters>& before = nullptr);
  /// Calls `each` with the encoded values of a slice that has arrived: first those of earlier pulls that it is a change of, as far as they
  /// have not been handed over. Every slice is handed over once. Executor's thread.
  void hand_over(std::size_t slice, const std::function<void(const IncomingValues&)>& each);
  /// The same for all slices that overlap [first, last).
  void hand_over(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each);
  /// The time at which the slice arrived.
  [[nodiscard]] std::chrono::steady_clock::time_point when(SliceId slice);
  [[nodiscard]] bool has(SliceId slice);
  /// All slices that overlap [first, last) have arrived, and cancel() was not called.
  [[nodiscard]] bool has(std::uint64_t first, std::uint64_t last);
  /// Every slice has arrived.
  [[nodiscard]] bool complete();
  /// Waits until all slices that overlap [first, last) have arrived. False: cancel() was called.
  bool await(std::uint64_t first, std::uint64_t last);
  void cancel();
  /// Appends the slices that have arrived and are not in `taken` (by SliceId; updated), as pieces of the flat buffer, as few as possible.
  void take(std::vector<bool>& taken, std::vector<store::IncomingUpdates::Piece>& out);

 private:
  const store::Layout& layout_;
  SharedBuffer buffer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_;  // by slice: it has arrived
  std::vector<std::chrono::steady_clock::time_point> when_;
  std::vector<std::uint8_t> bits_;
  std::vector<bool> change_;                    // by slice: of the values in `before_`
  std::shared_ptr<IncomingParameters> before_;  // null: no slice is a change, or all were handed over
  std::vector<bool> handed_over_;               // by slice
  std::size_t left_;                            // slices that were not handed over
  bool cancelled_ = false;
};

}  // namespace motley::runtime
