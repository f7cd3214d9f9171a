// StepIo: the interface by which a computation receives parameters while its forward pass runs, and hands out gradients while its backward
// pass makes them. The computation says which values it reads next and which gradients are final; the implementation may wait for
// parameters or send gradients.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "base/time.h"

namespace motley {

/// The format in which gradients are sent: bits per value for each slice (module codec), with error feedback.
struct GradientEncoding {
  struct Slice {
    std::uint64_t first = 0;
    std::uint64_t count = 0;
    std::uint8_t bits = 32;
  };
  std::vector<Slice> slices;  // ascending, covering the flat buffer
  float rescale = 1;  // scales the residual of error feedback, so that it keeps its meaning when the weight of contributions changes
  bool reset_residual = false;  // drops the residual
  /// For devices that make bf16 gradients: slices of 16 bits are sent as they are, all others as floats; nothing is rounded, and there is
  /// no residual.
  bool bf16_as_is = false;
};

/// Parameters that have arrived.
struct IncomingValues {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
  std::uint8_t bits = 32;            // 32: the values; fewer: an encoded difference to the previous values
  std::span<const std::byte> bytes;  // read at once; with 32 bits valid until the computation ends
  bool rounded = false;  // with fewer than 32 bits: not a difference but the rounded values, for devices that compute with no more bits
};

class StepIo;

/// The computation after this one, for devices that can start it before this one has ended. Its parameters have begun to arrive.
struct NextStep {
  std::uint64_t id = 0;  // equal to its own StepIo::id()
  std::span<const float> values;
  std::span<const std::uint32_t> samples;
  StepIo* io = nullptr;  // gives its parameters without blocking: wait_for() returns whether they have arrived
};

class StepIo {
 public:
  virtual ~StepIo() = default;
  /// Identifies the computation; 0: it was not announced by next_step().
  [[nodiscard]] virtual std::uint64_t id() const { return 0; }
  /// Blocks until values [first, last) of the flat buffer have arrived. False: abandon this computation. The io of a NextStep does not
  /// block: false means that they have not arrived yet.
  virtual bool wait_for(std::uint64_t first, std::uint64_t last) = 0;
  /// For devices that keep parameters from step to step: after wait_for(), passes the values of [first, last) that have arrived since the
  /// last computation, in the order in which they must be applied. May pass values beyond the range. False: the values are in the flat
  /// buffer.
  virtual bool take(std::uint64_t, std::uint64_t, const std::function<void(const IncomingValues&)>&) { return false; }
  /// Reports how long the device was idle for lack of parameters during this gradient; several calls add up. Only the device can measure
  /// this: it may have queued work left while wait_for() blocks, and it needs longer when it must copy the values.
  virtual void stalled(Duration) {}
  /// Values [first, last) of the flat gradient are final.
  virtual void gradient_ready(std::uint64_t first, std::uint64_t last) = 0;

  /// The samples that the next computation will probably use, so that they can be prepared; empty: unknown. Valid until this computation
  /// ends.
  [[nodiscard]] virtual std::span<const std::uint32_t> likely_next_samples() { return {}; }

  /// The next computation, if it is known; it may still be cancelled or replaced. Its samples are valid until this computation ends, its
  /// values until that one ends or is replaced.
  [[nodiscard]] virtual std::optional<NextStep> next_step() { return std::nullopt; }

  /// The format in which gradients are wanted; null: floats. Valid until the computation ends. A device that cannot encode hands out floats
  /// by gradient_ready().
  [[nodiscard]] virtual const GradientEncoding* gradient_encoding() { return nullptr; }
  /// As gradient_ready(), with encoded values: the bytes of each slice begin at the position of its first float.
  virtual void encoded_gradient_ready(std::uint64_t, std::uint64_t) {}
};

/// All parameters are present, and gradients are not sent.
class NoStreaming final : public StepIo {
 public:
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
};

}  // namespace motley
