// Flat buffers of floats that several threads hand to each other. Not touched when made: a server that holds a part of the model only
// pays for that part. A large one goes back to a pool, where the next of its size finds it: fresh memory costs the kernel as much time as a
// copy does. Where there are peers to read it in place, a large one lies in memory that can be lent to them.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.h"

namespace motley::runtime {

class Buffer {
 public:
  /// What it holds at first is anything. `shareable`: a large one lies where peers may read it, if there are any.
  explicit Buffer(std::size_t values, bool shareable = false);
  /// Of a peer: only read, until the last of `borrows` is gone with this.
  Buffer(const float* first, std::size_t values) : floats_(const_cast<float*>(first)), count_(values), borrowed_(true) {}  // NOLINT
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  [[nodiscard]] bool borrowed() const { return borrowed_; }
  /// Of what was borrowed: so much of it may be read now.
  void add(const transport::BorrowedMemory& borrow) { borrows_.push_back(borrow); }
  /// Where a flat buffer begins of which `part` is what lies at `offset`.
  [[nodiscard]] static const float* flat_begin(std::span<const std::byte> part, std::size_t offset) {
    return reinterpret_cast<const float*>(part.data()) - offset;
  }

  /// Not to be written to when borrowed.
  [[nodiscard]] std::span<float> floats() { return {floats_, count_}; }
  [[nodiscard]] std::span<const float> floats() const { return {floats_, count_}; }
  /// Values [first, first + count) as they lie in memory.
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

/// Whether a buffer of so many values is worth lending.
[[nodiscard]] bool shareable(std::size_t values);

using SharedBuffer = std::shared_ptr<Buffer>;
inline SharedBuffer make_buffer(std::size_t values) { return std::make_shared<Buffer>(values); }
/// The same for what peers are to be sent.
inline SharedBuffer make_shareable_buffer(std::size_t values) { return std::make_shared<Buffer>(values, /*shareable=*/true); }

}  // namespace motley::runtime
