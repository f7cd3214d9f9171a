// Local rounds that overlap, merge late and die: the global model is always the sum of the counted deltas, each once, with the weight in
// the trace. The deltas are known: each local step moves every value by the learning rate, so the delta of a round is rate * steps.
#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "policy/strategies.h"
#include "sim/real_numbers.h"
#include "sim/world.h"
#include "trace/sinks.h"

namespace motley {
namespace {

constexpr std::size_t values = 12;
constexpr std::uint64_t total = 6'000;

class Constant : public GradientSource {
 public:
  void initialize(std::uint64_t, std::span<float> out) override { std::fill(out.begin(), out.end(), 0.0F); }
  StepResult gradient(std::span<const float>, std::span<const std::uint32_t> samples, std::span<float> out, StepIo&) override {
    std::fill(out.begin(), out.end(), -1.0F);
    return {0.5 * static_cast<double>(samples.size()), 0, samples.size()};
  }
  StepResult evaluate(std::span<const float>) override { return {}; }
};

/// Real arithmetic that records the delta of each order.
class Noted : public sim::RealNumbers {
 public:
  using RealNumbers::RealNumbers;
  StepReport compute(const wire::Order& order, std::span<const sim::ArrivedSlice> arrived_slices) override {
    deltas[{order.worker, order.step}] = order.rate * order.local_steps;
    merged += arrived_slices.size();
    most_steps = std::max(most_steps, order.local_steps);
    return RealNumbers::compute(order, arrived_slices);
  }
  std::map<std::pair<WorkerId, Step>, double> deltas;
  std::size_t merged = 0;  // slices, during a round
  std::uint32_t most_steps = 0;
};

sim::WorldOptions cluster_of(const std::vector<double>& speeds) {
  sim::WorldOptions world;
  for (const double speed : speeds) {
    cluster::Node node;
    node.name = "n" + std::to_string(world.cluster.nodes.size());
    node.samples_per_second = speed;
    node.link.up_bytes_per_second = node.link.down_bytes_per_second = 2'000;  // a contribution takes many milliseconds to send
    world.cluster.nodes.push_back(node);
  }
  world.cluster.servers = 2;
  world.cluster.server_nic = {from_seconds(0.0002), 8'000, 8'000};
  world.max_events = 1'000'000;
  world.chief.epoch_samples = world.chief.total_samples = world.chief.evaluate_every = total;
  world.chief.global_batch = 32;
  world.chief.quorum = static_cast<std::uint32_t>(speeds.size());
  return world;
}

struct Ran {
  double model = 0;     // one value of it; all are equal
  double expected = 0;  // the sum according to the trace
  std::uint64_t counted = 0;
  std::size_t merged = 0;
  std::uint32_t most_steps = 0;
};

Ran run(sim::WorldOptions options, const policy::Knobs& knobs) {
  const std::vector<store::TensorPlace> tensors{{0, values, TensorKind::parameter}};
  options.layout = store::cut(tensors, 3, 2);
  options.chief.servers = 2;
  auto strategy = policy::make_strategy({"multistep", knobs, {}}, {32, 0.0, {}});
  EXPECT_TRUE(strategy.ok());
  sim::RealNumbersOptions numbers_options;
  numbers_options.layout = options.layout;
  numbers_options.optimizer.momentum = 0;
  numbers_options.parameters = values;
  numbers_options.epoch_samples = total;
  numbers_options.local_steps = numbers_options.tracks_updates = true;
  numbers_options.local_momentum = 0;
  Constant source;
  Noted numbers(std::move(numbers_options), source);
  trace::Recorder recorder;
  policy::LrScheduleSpec schedule;
  sim::World world(options, std::move(*strategy), policy::LrSchedule(schedule, 32, total, total), numbers, recorder);
  (void)world.run();
  Ran ran{0, 0, 0, numbers.merged, numbers.most_steps};
  for (const trace::Event& event : recorder.events())
    if (const auto* counted = event.as<trace::Counted>()) {
      ran.expected += counted->weight * numbers.deltas.at({counted->worker, counted->step});
      ran.counted += counted->samples;
    }
  std::vector<float> model(values);
  numbers.values(model);
  for (const float value : model) EXPECT_FLOAT_EQ(value, model[0]);
  ran.model = model[0];
  return ran;
}

policy::Knobs in_whole_numbers() {
  policy::Knobs knobs;
  knobs.bits = policy::BitsConfig{false, {32, 32}};
  return knobs;
}

TEST(Rounds, Model_is_the_sum_of_the_counted_deltas) {
  const Ran ran = run(cluster_of({400, 400, 200, 100}), in_whole_numbers());
  EXPECT_EQ(ran.counted, total);
  EXPECT_GT(ran.merged, 0U) << "no parameters arrived during a round";
  EXPECT_GT(ran.most_steps, 4U);
  EXPECT_NEAR(ran.model, ran.expected, 1e-4 * ran.expected);
}

TEST(Rounds, Every_counted_delta_is_in_the_model_once_after_deaths) {
  for (int moment = 0; moment < 60; ++moment) {
    sim::WorldOptions options = cluster_of({400, 400, 200, 100});
    const Instant at = at_seconds(1.5 + 0.013 * moment);
    options.cluster.faults.push_back({at, cluster::FaultKind::kill, NodeId{static_cast<std::uint32_t>(moment % 4)}, {}, 1});
    options.cluster.faults.push_back(
        {at + from_seconds(0.4), cluster::FaultKind::join, NodeId{static_cast<std::uint32_t>(moment % 4)}, {}, 1});
    const Ran ran = run(options, in_whole_numbers());
    EXPECT_EQ(ran.counted, total) << "moment " << moment;
    EXPECT_NEAR(ran.model, ran.expected, 1e-4 * ran.expected) << "moment " << moment;
  }
}

TEST(Rounds, Few_bits_lose_nothing_over_time) {
  policy::Knobs knobs;  // 4 bits in each direction, with error feedback
  const Ran ran = run(cluster_of({400, 400, 200, 100}), knobs);
  EXPECT_EQ(ran.counted, total);
  EXPECT_NEAR(ran.model, ran.expected, 0.01 * ran.expected);
}

}  // namespace
}  // namespace motley
