// For tests: a step executor, its device, and a record of everything reported.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/linear_source_for_tests.h"
#include "runtime/step_executor.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {

using transport::run_ready;
using transport::run_until;

inline constexpr std::uint64_t epoch_samples = 50, seed = 7;

inline store::ReplicaOptions replica_options() { return {.optimizer = {}, .values = linear_values, .parameters = linear_parameters}; }

inline wire::Order order_of(std::uint64_t step) {
  return {.worker = {3},
          .step = {step},
          .parameters = {step},
          .version = {step},
          .local_steps = 1,
          .rate = 0.1,
          .push_bits = 32,
          .training = {},
          .limit = {},
          .micro = 1,
          .lease = {{Range{0, 8 * step, 8 * step + 8}}}};
}

/// Reference: the contribution computed on this thread with all parameters present.
inline std::vector<float> by_hand(const wire::Order& order, std::vector<float> values) {
  LinearSource source;
  store::Replica replica(replica_options());
  store::Epochs epochs(epoch_samples, seed);
  std::vector<float> out(linear_values);
  NoStreaming no_streaming;
  replica.contribute(source, {values, epochs.samples_of(order.lease)}, out, no_streaming);
  return out;
}

inline std::vector<float> held(const Buffer& buffer) { return {buffer.floats().begin(), buffer.floats().end()}; }

/// An emulated device of this speed.
inline cluster::Device a_device(double samples_per_second) {
  cluster::Spec spec;
  spec.nodes.emplace_back().samples_per_second = samples_per_second;
  return {spec, NodeId{0}, 1};
}

class StepExecutorTest : public testing::Test, private StepExecutorOwner {
 protected:
  void make(LinearTurns turns = {}, std::optional<cluster::Device> emulated = std::nullopt, store::LayerTiming layer_timing = {},
            std::uint32_t batch_multiple = 0, bool new_sizes_are_slow = false, std::uint32_t usual = 6) {
    step_executor.emplace(io,
                          StepExecutorSetup{std::make_unique<LinearSource>(std::move(turns)),
                                            replica_options(),
                                            linear_layout(),
                                            epoch_samples,
                                            seed,
                                            std::move(emulated),
                                            std::move(layer_timing),
                                            {},
                                            batch_multiple,
                                            new_sizes_are_slow,
                                            usual},
                          static_cast<StepExecutorOwner&>(*this));
  }

  std::shared_ptr<Computation> begin(std::uint64_t step, Duration limit = {}) {
    auto computation = std::make_shared<Computation>();
    computation->order = order_of(step);
    computation->order.limit = limit;
    computation->values = std::make_shared<IncomingParameters>(layout, make_buffer(layout.values));
    computation->out = make_buffer(linear_values);
    step_executor->compute(computation, clock);
    return computation;
  }

  void deliver_slice(Computation& computation, std::uint32_t s) {
    const store::Slice& slice = layout[SliceId{s}];
    const std::vector<float> values = linear_start();
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(slice.offset), slice.count,
                computation.values->buffer().floats().begin() + static_cast<std::ptrdiff_t>(slice.offset));
    computation.values->arrived(SliceId{s});
  }
  void deliver_all(Computation& computation) {
    for (std::uint32_t s = 0; s < layout.slices.size(); ++s) deliver_slice(computation, s);
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::Layout layout = linear_layout();
  Clock clock;

  struct Slice {
    std::uint64_t step;
    std::uint32_t slice;
    std::vector<float> values;  // when it was reported
    double at_s;                // on the test's clock
  };
  std::vector<Slice> slices;
  std::vector<std::uint64_t> steps;  // computed
  std::vector<StepReport> reports;
  std::vector<std::string> failures;
  std::optional<StepExecutor> step_executor;

 private:
  void produced(const std::shared_ptr<Computation>& computation, SliceId id) override {
    const store::Slice& slice = layout[id];
    const auto from = computation->out->floats().subspan(slice.offset, slice.count);
    slices.push_back({computation->order.step.value, id.value, {from.begin(), from.end()}, seconds(clock.now().time_since_epoch())});
  }
  void computed(const std::shared_ptr<Computation>& computation, const StepReport& report) override {
    steps.push_back(computation->order.step.value);
    reports.push_back(report);
  }
  void failed(const std::string& what) override { failures.push_back(what); }
};

}  // namespace motley::runtime
