// The next step of a worker, for a device that begins it before the current one has ended: its samples, and those of its parameters that
// have arrived. It keeps them as long as the device may read them. wait_for() never blocks.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/step_io.h"
#include "runtime/incoming_parameters.h"
#include "wire/message.h"

namespace motley::runtime {

/// Identifies the computation of this order among those of all workers. Never 0.
[[nodiscard]] inline std::uint64_t computation_id(const wire::Order& order) {
  constexpr int step_bits = 40;
  return (std::uint64_t{order.worker.value} << step_bits) + order.step.value + 1;
}

class NextStepIo final : public StepIo {
 public:
  NextStepIo(const wire::Order& order, std::shared_ptr<IncomingParameters> values, std::vector<std::uint32_t> samples)
      : id_(computation_id(order)), values_(std::move(values)), samples_(std::move(samples)) {}
  [[nodiscard]] NextStep as_next_step() { return {id_, values_->buffer().floats(), samples_, this}; }

  [[nodiscard]] std::uint64_t id() const override { return id_; }
  bool wait_for(std::uint64_t first, std::uint64_t last) override { return values_->has(first, last); }
  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    values_->hand_over(first, last, each);
    return true;
  }
  void gradient_ready(std::uint64_t, std::uint64_t) override { check(false, "a step that is only prefetched produces no gradient"); }

 private:
  std::uint64_t id_;
  std::shared_ptr<IncomingParameters> values_;
  std::vector<std::uint32_t> samples_;
};

}  // namespace motley::runtime
