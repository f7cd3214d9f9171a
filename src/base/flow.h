// Numbers that come and go while they are used: parameters still arriving as the forward pass begins, gradients leaving as the backward
// pass makes them. Whoever computes says what it needs next and what it has just made; who listens may wait or send.
#pragma once
#include <cstdint>

namespace motley {

class Flow {
 public:
  virtual ~Flow() = default;
  /// Values [first, last) of the flat buffer are about to be read. Returns when they are there, or false: give this computation up.
  virtual bool need(std::uint64_t first, std::uint64_t last) = 0;
  /// Values [first, last) of the flat gradient are final.
  virtual void made(std::uint64_t first, std::uint64_t last) = 0;
};

/// Everything is there and nobody waits.
class Still final : public Flow {
 public:
  bool need(std::uint64_t, std::uint64_t) override { return true; }
  void made(std::uint64_t, std::uint64_t) override {}
};

}  // namespace motley
