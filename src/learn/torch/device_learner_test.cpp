// The learner for devices with memory of their own, compared with the CPU's. On the CPU, where lanes and pinned memory have no effect, and
// on a GPU where there is one.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "learn/torch/learners.h"
#include "learn/torch/test_models.h"

namespace motley::learn {
namespace {

struct OnDevice {
  std::string name;
  Result<std::unique_ptr<Learner>> (*make)(const ModelSpec&, std::shared_ptr<const DataSet>);
  bool gpu = false;
};

Result<std::unique_ptr<Learner>> on_gpu(const ModelSpec& spec, std::shared_ptr<const DataSet> data) {
  return make_learner(spec, std::move(data), {.cuda = true, .index = 0});
}

const OnDevice devices[] = {{"Cpu", make_device_learner}, {"Gpu", on_gpu, true}};

class DeviceTwin : public testing::TestWithParam<std::tuple<Example, OnDevice>> {
 protected:
  void SetUp() override {
    if (std::get<1>(GetParam()).gpu && gpus() == 0) GTEST_SKIP() << "there is no GPU that torch can use";
    const auto data = example().data();
    use_threads(1);
    cpu = std::move(make_autograd_learner(example().spec, data).value());
    device = std::move(std::get<1>(GetParam()).make(example().spec, data).value());
  }
  [[nodiscard]] const Example& example() const { return std::get<0>(GetParam()); }

  std::unique_ptr<Learner> cpu, device;
};
INSTANTIATE_TEST_SUITE_P(Each, DeviceTwin, testing::Combine(testing::ValuesIn(models), testing::ValuesIn(devices)),
                         [](const auto& each) { return std::get<0>(each.param).name + "On" + std::get<1>(each.param).name; });

/// |b - a| / |a|
double distance(const Values& a, const Values& b) {
  double difference = 0;
  double length = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(static_cast<double>(a[i]) - b[i], 2);
    length += std::pow(static_cast<double>(a[i]), 2);
  }
  return std::sqrt(difference / length);
}

TEST_P(DeviceTwin, Has_the_same_shape_loss_and_gradient) {
  EXPECT_EQ(device->shape().values(), cpu->shape().values());
  EXPECT_EQ(device->activation_bytes_per_sample(), cpu->activation_bytes_per_sample());
  EXPECT_EQ(device->profile().size(), cpu->profile().size());
  const Values values = initial(*cpu);
  for (const std::uint32_t count : {2U, 16U, 5U}) {
    const Step a = step(*cpu, values, samples_from(3, count));
    const Step b = step(*device, values, samples_from(3, count));
    double squares = 0;
    for (std::size_t i = 0; i < cpu->shape().parameters; ++i) squares += std::pow(static_cast<double>(b.gradient[i]), 2);
    EXPECT_NEAR(b.result.squared_norm, squares, 1e-5 * squares) << count;
    EXPECT_NEAR(b.result.loss_sum, a.result.loss_sum, 1e-4 * a.result.loss_sum) << count;
    EXPECT_EQ(b.result.correct, a.result.correct) << count;
    EXPECT_EQ(b.result.samples, a.result.samples);
    EXPECT_LT(distance(a.gradient, b.gradient), 1e-3) << count;
  }
}

TEST_P(DeviceTwin, Evaluates_the_same) {
  const Values values = initial(*cpu);
  const StepResult a = cpu->evaluate(values);
  const StepResult b = device->evaluate(values);
  EXPECT_NEAR(b.loss_sum, a.loss_sum, 1e-3 * a.loss_sum);
  EXPECT_NEAR(static_cast<double>(b.correct), static_cast<double>(a.correct), 1);
  EXPECT_EQ(b.samples, a.samples);
}

/// Records the ranges that are asked for and announced; may give up.
struct Listener final : StepIo {
  bool wait_for(std::uint64_t first, std::uint64_t last) override {
    needed.emplace_back(first, last);
    return needed.size() <= ranges_before_giving_up;
  }
  void gradient_ready(std::uint64_t first, std::uint64_t last) override { done.emplace_back(first, last); }
  std::size_t ranges_before_giving_up = 1000;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> needed, done;
};

TEST_P(DeviceTwin, Each_value_and_gradient_is_streamed_once_in_order) {
  const Values values = initial(*cpu);
  Values out(values.size());
  Listener listener;
  device->gradient(values, samples_from(0, 4), out, listener);
  for (auto* ranges : {&listener.needed, &listener.done}) {
    std::uint64_t covered = 0;
    for (const auto& [first, last] : *ranges) covered += last - first;
    EXPECT_EQ(covered, values.size());
  }
  const auto parameters = device->shape().parameters;
  const auto statistics = [&](const auto& range) { return range.first >= parameters; };
  std::erase_if(listener.needed, statistics);
  std::erase_if(listener.done, statistics);
  EXPECT_TRUE(std::is_sorted(listener.needed.begin(), listener.needed.end()));
  EXPECT_TRUE(std::is_sorted(listener.done.rbegin(), listener.done.rend()));
}

/// All values are present but the first range, which takes a while.
struct Late final : StepIo {
  bool wait_for(std::uint64_t, std::uint64_t) override {
    if (std::exchange(asked, true)) return true;
    for (const auto since = std::chrono::steady_clock::now(); std::chrono::steady_clock::now() - since < late;) std::this_thread::yield();
    return true;
  }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
  void stalled(Duration time) override { recorded = time; }
  static constexpr std::chrono::milliseconds late{30};
  bool asked = false;
  std::optional<Duration> recorded;
};

TEST_P(DeviceTwin, Reports_how_long_it_waited_for_values) {
  const Values values = initial(*cpu);
  Values out(values.size());
  device->gradient(values, samples_from(0, 4), out);  // warm-up
  Late io;
  device->gradient(values, samples_from(0, 4), out, io);
  if (!std::get<1>(GetParam()).gpu) {
    EXPECT_FALSE(io.recorded) << "on the CPU every call is synchronous";
    return;
  }
  if (describe_backend().find("libtorch 1.") != std::string::npos) GTEST_SKIP() << "this torch does not record the time of events";
  ASSERT_TRUE(io.recorded);
  EXPECT_GT(*io.recorded, Late::late / 2);
}

/// Predicts the next samples.
struct Speculating final : StepIo {
  explicit Speculating(std::vector<std::uint32_t> samples) : next(std::move(samples)) {}
  bool wait_for(std::uint64_t, std::uint64_t) override { return true; }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
  std::span<const std::uint32_t> likely_next_samples() override { return next; }
  std::vector<std::uint32_t> next;
};

TEST_P(DeviceTwin, Prefetched_samples_change_no_gradient) {
  const Values values = initial(*cpu);
  const Step expected = step(*device, values, samples_from(8, 8));
  Values out(values.size());
  for (const std::uint32_t likely : {8U, 9U}) {
    Speculating io(samples_from(likely, 8));
    device->gradient(values, samples_from(0, 8), out, io);
    EXPECT_LT(distance(expected.gradient, step(*device, values, samples_from(8, 8)).gradient), 1e-5) << likely;
  }
  Speculating io(samples_from(8, 8));
  device->gradient(values, samples_from(0, 8), out, io);
  device->evaluate(values);  // other samples in between
  EXPECT_LT(distance(expected.gradient, step(*device, values, samples_from(8, 8)).gradient), 1e-5);
}

/// One computation, and perhaps its next step.
struct Numbered final : StepIo {
  explicit Numbered(std::uint64_t number_) : number(number_) {}
  [[nodiscard]] std::uint64_t id() const override { return number; }
  bool wait_for(std::uint64_t, std::uint64_t) override { return !gives_up_now; }
  bool take(std::uint64_t first, std::uint64_t, const std::function<void(const IncomingValues&)>&) override {
    return taken.push_back(first), false;
  }
  void gradient_ready(std::uint64_t, std::uint64_t) override {}
  std::optional<NextStep> next_step() override { return std::exchange(next, std::nullopt); }
  std::uint64_t number;
  std::optional<NextStep> next;
  std::vector<std::uint64_t> taken;  // first value of each range
  bool gives_up_now = false;
};

TEST_P(DeviceTwin, A_step_begun_early_continues_where_it_stopped) {
  const Values values = initial(*cpu);
  const Values newer = initial(*cpu, 2);
  const std::vector<std::uint32_t> samples = samples_from(0, 8);
  const std::vector<std::uint32_t> later = samples_from(8, 8);
  const Step first = step(*device, values, samples);
  const Step second = step(*device, newer, later);
  Numbered now(1), ahead(2), after(2);
  now.next = NextStep{2, newer, later, &ahead};
  Step one{{}, Values(values.size())};
  one.result = device->gradient(values, samples, one.gradient, now);
  Step two{{}, Values(values.size())};
  two.result = device->gradient(newer, later, two.gradient, after);
  EXPECT_LT(distance(first.gradient, one.gradient), 1e-5);
  EXPECT_LT(distance(second.gradient, two.gradient), 1e-5);
  EXPECT_NEAR(two.result.loss_sum, second.result.loss_sum, 1e-5 * second.result.loss_sum);
  EXPECT_FALSE(ahead.taken.empty());
  EXPECT_EQ(ahead.taken.size() + after.taken.size(), now.taken.size()) << "each block's values are taken once";
}

TEST_P(DeviceTwin, A_step_begun_early_and_dropped_changes_nothing) {
  const Values values = initial(*cpu);
  const Values newer = initial(*cpu, 2);
  const std::vector<std::uint32_t> samples = samples_from(0, 8);
  const Step expected = step(*device, values, samples);
  const StepResult evaluated = device->evaluate(values);
  for (const bool gives_up_now : {false, true}) {
    Numbered now(1), ahead(2), other(3);
    ahead.gives_up_now = gives_up_now;
    now.next = NextStep{2, newer, samples, &ahead};
    Values out(values.size());
    device->gradient(values, samples, out, now);
    device->gradient(values, samples, out, other);
    EXPECT_LT(distance(expected.gradient, out), 1e-5) << "another came";
    now.next = NextStep{2, newer, samples, &ahead};
    device->gradient(values, samples, out, now);
    EXPECT_NEAR(device->evaluate(values).loss_sum, evaluated.loss_sum, 1e-5 * evaluated.loss_sum);
    EXPECT_LT(distance(expected.gradient, step(*device, values, samples).gradient), 1e-5);
  }
}

TEST_P(DeviceTwin, A_step_given_up_does_not_change_the_next_one) {
  const Values values = initial(*cpu);
  const Step before = step(*device, values, samples_from(0, 8));
  Listener gives_up;
  gives_up.ranges_before_giving_up = 1;
  Values out(values.size());
  device->gradient(values, samples_from(8, 8), out, gives_up);
  const Step after = step(*device, values, samples_from(0, 8));
  EXPECT_LT(distance(before.gradient, after.gradient), 1e-5);
}

TEST_P(DeviceTwin, Bf16_gradient_is_close_to_fp32) {
  ModelSpec spec = example().spec;
  spec.precision = "bf16";
  if (!std::get<1>(GetParam()).gpu) GTEST_SKIP() << "device_bf16_test.cpp covers the CPU";
  const auto bf16 = std::move(std::get<1>(GetParam()).make(spec, example().data()).value());
  const Values values = initial(*cpu);
  const Step a = step(*cpu, values, samples_from(0, 32));
  const Step b = step(*bf16, values, samples_from(0, 32));
  EXPECT_NEAR(b.result.loss_sum, a.result.loss_sum, 0.05 * a.result.loss_sum);
  EXPECT_LT(distance(a.gradient, b.gradient), 0.3);  // small networks average over few values
}

/// Steps of SGD with Nesterov momentum, computed with gradient().
struct ByHand {
  Values model, momentum;
  double loss = 0;
  void step(Learner& learner, const std::vector<std::uint32_t>& samples, const LocalSgd::Rule& rule) {
    const std::size_t parameters = learner.shape().parameters;
    momentum.resize(parameters);
    Values ahead = model;
    for (std::size_t i = 0; i < parameters; ++i) ahead[i] -= static_cast<float>(rule.momentum * rule.rate) * momentum[i];
    Values gradient(model.size());
    loss += learner.gradient(ahead, samples, gradient).loss_sum;
    for (std::size_t i = 0; i < parameters; ++i) {
      momentum[i] = static_cast<float>(rule.momentum) * momentum[i] + gradient[i] + static_cast<float>(rule.weight_decay) * model[i];
      model[i] -= static_cast<float>(rule.rate) * momentum[i];
    }
    for (std::size_t i = parameters; i < model.size(); ++i) model[i] += gradient[i];
  }
};

Values less(const Values& a, const Values& b) {
  Values difference(a.size());
  std::transform(a.begin(), a.end(), b.begin(), difference.begin(), std::minus<>());
  return difference;
}

TEST_P(DeviceTwin, Local_steps_equal_steps_by_hand) {
  const LocalSgd::Rule rule{0.01, 0.9, 0.001};
  const Values values = initial(*cpu);
  ByHand hand{values, {}};
  LocalSgd& local_sgd = *device->local_sgd();
  local_sgd.begin(values);
  Values delta(values.size());
  for (std::uint32_t round = 0; round < 2; ++round) {  // the momentum stays from round to round
    const Values start = hand.model;
    hand.loss = 0;
    local_sgd.begin_round();
    for (std::uint32_t s = 0; s < 3; ++s) {
      local_sgd.step(samples_from(16 * round + 4 * s, 4), rule);
      hand.step(*cpu, samples_from(16 * round + 4 * s, 4), rule);
    }
    const StepResult result = local_sgd.delta(delta);
    EXPECT_EQ(result.samples, 12U);
    EXPECT_NEAR(result.loss_sum, hand.loss, 0.01 * hand.loss);
    EXPECT_LT(distance(less(hand.model, start), delta), 0.01) << round;
  }
}

TEST_P(DeviceTwin, Newer_values_merge_with_a_fraction_of_the_delta) {
  const LocalSgd::Rule rule{0.01, 0.9, 0};
  const Values values = initial(*cpu);
  const Values newer = initial(*cpu, 2);
  const std::size_t parameters = cpu->shape().parameters;
  constexpr double kept_fraction = 0.75;
  LocalSgd& local_sgd = *device->local_sgd();
  local_sgd.begin(values);
  local_sgd.begin_round();
  local_sgd.step(samples_from(0, 4), rule);
  ByHand hand{values, {}};
  hand.step(*cpu, samples_from(0, 4), rule);
  const Values delta_so_far = less(hand.model, values);
  // During the round: newer values for the whole model; the delta so far counts in full.
  local_sgd.watch();
  local_sgd.merge(0, newer, kept_fraction);
  local_sgd.watch();
  for (std::size_t i = 0; i < newer.size(); ++i)
    hand.model[i] = newer[i] + static_cast<float>(i < parameters ? kept_fraction : 1) * delta_so_far[i];
  for (float& v : hand.momentum) v *= static_cast<float>(kept_fraction);
  const Values merged = hand.model;
  local_sgd.step(samples_from(4, 4), rule);
  hand.step(*cpu, samples_from(4, 4), rule);
  Values whole = less(hand.model, merged);
  for (std::size_t i = 0; i < whole.size(); ++i) whole[i] += delta_so_far[i];
  Values delta(values.size());
  local_sgd.delta(delta);
  EXPECT_LT(distance(whole, delta), 0.01);
  double update_norm = 0;
  for (std::size_t i = 0; i < parameters; ++i) update_norm += std::pow(static_cast<double>(newer[i]) - values[i], 2);
  EXPECT_NEAR(local_sgd.update_norm(), update_norm, 1e-5 * update_norm);
  // Between rounds: values that arrived too late to be merged, then values that include the whole delta.
  local_sgd.put_stale(0, values, kept_fraction);
  for (std::size_t i = 0; i < values.size(); ++i)
    hand.model[i] = values[i] + static_cast<float>(i < parameters ? kept_fraction : 1) * whole[i];
  for (float& v : hand.momentum) v *= static_cast<float>(kept_fraction);
  const std::size_t half = parameters / 2;
  local_sgd.put(0, std::span(newer).first(half));
  std::copy_n(newer.begin(), half, hand.model.begin());
  const Values start = hand.model;
  local_sgd.begin_round();
  local_sgd.step(samples_from(8, 4), rule);
  hand.step(*cpu, samples_from(8, 4), rule);
  local_sgd.delta(delta);
  EXPECT_LT(distance(less(hand.model, start), delta), 0.01);
}

TEST(Gpu, Refuses_an_absent_GPU_with_the_present_ones) {
  const auto learner = make_learner(models[0].spec, models[0].data(), {.cuda = true, .index = 99});
  ASSERT_FALSE(learner.ok());
  EXPECT_NE(learner.error().message.find("cuda:99"), std::string::npos);
  EXPECT_NE(learner.error().message.find("choose a cpu"), std::string::npos);
}

}  // namespace
}  // namespace motley::learn
