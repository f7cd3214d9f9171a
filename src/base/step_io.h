// Numbers that come and go while they are used: parameters still arriving as the forward pass begins, gradients leaving as the backward
// pass makes them. Whoever computes says what it needs next and what it has just made; who listens may wait or send.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace motley {

/// How a gradient is to leave: each slice with so many bits a value, as room codec has it, together with what rounding has kept back so
/// far.
struct GradientEncoding {
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint8_t bits = 32;
  };
  std::vector<Slice> slices;    // ascending, all of the flat buffer
  float rescale = 1;            // what was kept back means the same change of the model when it is multiplied by this
  bool reset_residual = false;  // nothing that was kept back counts
  /// Only for who makes numbers of 16 bits: those slices of them leave as they are, the others as floats. Nothing is rounded, nothing kept
  /// back.
  bool bf16_as_is = false;
};

/// Values that have come in.
struct IncomingValues {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint8_t bits = 32;            // 32: the values themselves; fewer: a change of what they were before, coded
  std::span<const std::byte> bytes;  // to be read at once, unless they are the values themselves: then until the computation ends
  bool rounded = false;              // if fewer than 32: no change, but the values themselves, for who computes with no more bits
};

class StepIo;

/// The computation that comes after this one, for who can begin with it before this one has ended. Its values have begun to come.
struct NextStep {
  std::uint64_t id = 0;  // as its own flow will say it
  std::span<const float> values;
  std::span<const std::uint32_t> samples;
  StepIo* io = nullptr;  // to take its values by; nobody waits there: wait_for() says whether they have come
};

class StepIo {
 public:
  virtual ~StepIo() = default;
  /// Which computation this is, no other having the same; 0: one that was never foretold.
  [[nodiscard]] virtual std::uint64_t id() const { return 0; }
  /// Values [first, last) of the flat buffer are about to be read. Returns when they are there, or false: give this computation up.
  virtual bool wait_for(std::uint64_t first, std::uint64_t last) = 0;
  /// For who keeps the values that it was given, on a device: after wait_for(), what has come of [first, last) since the last computation,
  /// as it came and in the order in which it counts. It may reach beyond them. False: the values lie where they always do.
  virtual bool take(std::uint64_t, std::uint64_t, const std::function<void(const IncomingValues&)>&) { return false; }
  /// The device stood still for values for so long, in one gradient of it; several add up. For who knows: a device that has work left
  /// while wait_for() waits stands still for less than that takes, and one that must copy what has come for more.
  virtual void stalled(Duration) {}
  /// Values [first, last) of the flat gradient are final.
  virtual void gradient_ready(std::uint64_t first, std::uint64_t last) = 0;

  /// What the next computation is likely to be over, for who can make its samples ready meanwhile; empty: nobody knows. Valid until the
  /// computation ends.
  [[nodiscard]] virtual std::span<const std::uint32_t> likely_next_samples() { return {}; }

  /// What comes next, unless something happens; nothing: it is not known yet. Its samples are valid until this computation
  /// ends, its values until that one does, or another in its place.
  [[nodiscard]] virtual std::optional<NextStep> next_step() { return std::nullopt; }

  /// How gradients are wanted; null: as floats. Valid until the computation ends. Who cannot code leaves floats, and says gradient_ready().
  [[nodiscard]] virtual const GradientEncoding* gradient_encoding() { return nullptr; }
  /// As gradient_ready(), but coded: the bytes of each slice lie where its floats would begin.
  virtual void encoded_gradient_ready(std::uint64_t, std::uint64_t) {}
};

/// Everything is there and nobody waits.
class NoStreaming final : public StepIo {
 public:
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
};

}  // namespace motley
