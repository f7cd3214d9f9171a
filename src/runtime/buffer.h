// Flat buffers of floats that threads share. Memory is uninitialised, so a server that fills only its own slices pays only for those pages.
// Large buffers are recycled through a pool, since page faults of fresh memory cost as much time as a copy. If peers can read memory of
// this process in place, large shareable buffers are allocated from the shared arena.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.h"

namespace motley::runtime {

class Buffer {
 public:
  /// Uninitialised. `shareable`: if large, in shared memory, so that peers can read it in place.
  explicit Buffer(std::size_t values, bool shareable = false);
  /// Memory of a peer, read-only; it stays valid as long as this holds its borrows, see add().
  Buffer(const float* first, std::size_t values) : floats_(const_cast<float*>(first)), count_(values), borrowed_(true) {}  // NOLINT
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] bool borrowed() const { return borrowed_; }
  /// Keeps a borrow of a part of the memory until this is destroyed.
  void add(const transport::BorrowedMemory& borrow) { borrows_.push_back(borrow); }
  /// The first value of a flat buffer in which `part` begins at value `offset`.
  [[nodiscard]] static const float* flat_begin(std::span<const std::byte> part, std::size_t offset) {
    return reinterpret_cast<const float*>(part.data()) - offset;
  }

  /// Must not be written to if borrowed.
  [[nodiscard]] std::span<float> floats() { return {floats_, count_}; }
  [[nodiscard]] std::span<const float> floats() const { return {floats_, count_}; }
  /// The bytes of values [first, first + count).
  [[nodiscard]] std::span<std::byte> bytes(std::size_t first, std::size_t count) {
    return std::as_writable_bytes(floats().subspan(first, count));
  }
  [[nodiscard]] std::span<const std::byte> bytes(std::size_t first, std::size_t count) const {
    return std::as_bytes(floats().subspan(first, count));
  }

 private:
  float* floats_;
  std::size_t count_;
  bool shareable_ = false;
  bool borrowed_ = false;
  std::vector<transport::BorrowedMemory> borrows_;
};

/// Whether a shareable buffer of so many values is allocated in shared memory.
[[nodiscard]] bool shareable(std::size_t values);

using SharedBuffer = std::shared_ptr<Buffer>;
inline SharedBuffer make_buffer(std::size_t values) { return std::make_shared<Buffer>(values); }
/// For values that are sent to peers.
inline SharedBuffer make_shareable_buffer(std::size_t values) { return std::make_shared<Buffer>(values, /*shareable=*/true); }

}  // namespace motley::runtime
