// Flat buffers of floats that several threads hand to each other. Not touched when made: a server that holds a part of the model only
// pays for that part. A large one goes back to a pool, where the next of its size finds it: fresh memory costs the kernel as much time as a
// copy does.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

namespace motley::run {

class Buffer {
 public:
  /// What it holds at first is anything.
  explicit Buffer(std::size_t values);
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

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
};

using SharedBuffer = std::shared_ptr<Buffer>;
inline SharedBuffer make_buffer(std::size_t values) { return std::make_shared<Buffer>(values); }

}  // namespace motley::run
