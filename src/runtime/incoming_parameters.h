// Parameters on their way to where they are computed on. The pump fills, the desk waits and takes.
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

/// The parameters of one pull, as they come in. The pump fills, the desk waits.
class IncomingParameters {
 public:
  IncomingParameters(const store::Layout& layout, SharedBuffer buffer);
  [[nodiscard]] Buffer& buffer() { return *buffer_; }
  /// Its slice is in the buffer: its values, or coded, from where its values would begin: with fewer than 32 bits a change of those that
  /// came with `before`, or without one the values rounded to so many.
  void arrived(SliceId slice, std::uint8_t bits = 32, const std::shared_ptr<IncomingParameters>& before = nullptr);
  /// Of a slice that is there: what makes its values of those that were handed over before, each only once. The desk's.
  void hand_over(std::size_t slice, const std::function<void(const IncomingValues&)>& each);
  /// The same of all that touch [first, last).
  void hand_over(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each);
  /// When it did.
  [[nodiscard]] std::chrono::steady_clock::time_point when(SliceId slice);
  [[nodiscard]] bool has(SliceId slice);
  /// All slices that touch [first, last) are there, and still wanted.
  [[nodiscard]] bool has(std::uint64_t first, std::uint64_t last);
  /// Every slice is there.
  [[nodiscard]] bool complete();
  /// Returns when all slices that touch [first, last) are there; false: no longer wanted.
  bool await(std::uint64_t first, std::uint64_t last);
  void cancel();
  /// The slices that are there and not in `taken` (by SliceId; grows with them), as pieces of the flat buffer, as few as possible.
  void take(std::vector<bool>& taken, std::vector<store::IncomingUpdates::Piece>& out);

 private:
  const store::Layout& layout_;
  SharedBuffer buffer_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<bool> here_;
  std::vector<std::chrono::steady_clock::time_point> when_;
  std::vector<std::uint8_t> bits_;
  std::vector<bool> change_;                    // of what was handed over before
  std::shared_ptr<IncomingParameters> before_;  // null: nothing here is a change, or all was handed over
  std::vector<bool> handed_over_;               // the desk's
  std::size_t left_;                            // slices that were not
  bool cancelled_ = false;
};

}  // namespace motley::runtime
