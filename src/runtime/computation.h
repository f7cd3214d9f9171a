// One step that a worker computes: shared by the event loop, which fills in parameters and sends gradients, and the computing thread.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "base/time.h"
#include "runtime/buffer.h"
#include "runtime/incoming_parameters.h"
#include "wire/message.h"

namespace motley::runtime {

struct Computation {
  wire::Order order;
  std::shared_ptr<IncomingParameters> values;
  SharedBuffer out;         // the contribution
  Instant began{};          // on the clock of training
  std::uint64_t samples{};  // it will have; known when its first slice is ready
  std::atomic<bool> cancelled = false;
  /// Bits per value in which `out` is encoded, each slice from where its floats would begin; 0: `out` holds floats.
  std::atomic<std::uint8_t> coded = 0;

  /// Parameters of a later pull are being received: local steps merge them when they arrive. From any thread.
  void comes(const std::shared_ptr<IncomingParameters>& newer);
  [[nodiscard]] std::shared_ptr<IncomingParameters> newer();

 private:
  std::mutex mutex_;
  std::shared_ptr<IncomingParameters> newer_;
};

}  // namespace motley::runtime
