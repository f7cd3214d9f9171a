#include "run/desk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <fstream>
#include <future>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "run/linear_source_for_tests.h"
#include "transport/ear_for_tests.h"

namespace motley::run {
namespace {

using transport::run_ready;
using transport::run_until;

constexpr std::uint64_t epoch_samples = 50, seed = 7;

store::ReplicaOptions replica_options() { return {.optimizer = {}, .values = linear_values, .parameters = linear_parameters}; }

wire::Order order_of(std::uint64_t step) {
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

/// The same contribution, on this thread and with everything there.
std::vector<float> by_hand(const wire::Order& order, std::vector<float> values) {
  LinearSource source;
  store::Replica replica(replica_options());
  store::Epochs epochs(epoch_samples, seed);
  std::vector<float> out(linear_values);
  Still still;
  replica.contribute(source, {values, epochs.samples_of(order.lease)}, out, still);
  return out;
}

std::vector<float> held(const Buffer& buffer) { return {buffer.floats().begin(), buffer.floats().end()}; }

/// On which a slow device takes years.
cluster::Device a_device(double samples_per_second) {
  cluster::Spec spec;
  spec.nodes.emplace_back().samples_per_second = samples_per_second;
  return {spec, NodeId{0}, 1};
}

/// Spins until this thread of ours waits for something; from /proc.
void await_asleep(pid_t thread) {
  for (std::string state; state != "S"; std::this_thread::yield()) {
    std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(file, line);
    state = line.substr(line.rfind(')') + 2, 1);  // behind the name, which may hold anything
  }
}

class DeskTest : public testing::Test, private DeskOwner {
 protected:
  void make(LinearTurns turns = {}, std::optional<cluster::Device> emulated = std::nullopt, store::Cadence cadence = {},
            std::uint32_t grain = 0, bool meets_sizes = false, std::uint32_t usual = 6) {
    desk.emplace(io,
                 DeskKit{std::make_unique<LinearSource>(std::move(turns)),
                         replica_options(),
                         linear_layout(),
                         epoch_samples,
                         seed,
                         std::move(emulated),
                         std::move(cadence),
                         {},
                         grain,
                         meets_sizes,
                         usual},
                 static_cast<DeskOwner&>(*this));
  }

  std::shared_ptr<Computation> begin(std::uint64_t step, Duration limit = {}) {
    auto computation = std::make_shared<Computation>();
    computation->order = order_of(step);
    computation->order.limit = limit;
    computation->values = std::make_shared<Arrival>(layout, make_buffer(layout.values));
    computation->out = make_buffer(linear_values);
    desk->compute(computation, clock);
    return computation;
  }

  void lay(Computation& computation, std::uint32_t s) {
    const store::Slice& slice = layout[SliceId{s}];
    const std::vector<float> values = linear_start();
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(slice.offset), slice.count,
                computation.values->buffer().floats().begin() + static_cast<std::ptrdiff_t>(slice.offset));
    computation.values->arrived(SliceId{s});
  }
  void lay_all(Computation& computation) {
    for (std::uint32_t s = 0; s < layout.slices.size(); ++s) lay(computation, s);
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::Layout layout = linear_layout();
  Clock clock;

  struct Slice {
    std::uint64_t step;
    std::uint32_t slice;
    std::vector<float> values;  // as they were when it was told
    double at_s;                // on the test's clock
  };
  std::vector<Slice> slices;
  std::vector<std::uint64_t> steps;  // computed
  std::vector<store::Worth> worths;
  std::vector<Duration> times;
  std::vector<Duration> stood;
  std::vector<bool> first_of_size;
  std::vector<std::string> failures;
  std::optional<Desk> desk;

 private:
  void produced(const std::shared_ptr<Computation>& computation, SliceId id) override {
    const store::Slice& slice = layout[id];
    const auto from = computation->out->floats().subspan(slice.offset, slice.count);
    slices.push_back({computation->order.step.value, id.value, {from.begin(), from.end()}, seconds(clock.now().time_since_epoch())});
  }
  void computed(const std::shared_ptr<Computation>& computation, const store::Worth& worth, const DeskTime& time) override {
    steps.push_back(computation->order.step.value);
    worths.push_back(worth);
    times.push_back(time.compute);
    stood.push_back(time.stood);
    first_of_size.push_back(time.first_of_size);
  }
  void failed(const std::string& what) override { failures.push_back(what); }
};

TEST_F(DeskTest, ComputesWhateverOrderTheSlicesComeIn) {
  make();
  std::vector<std::uint32_t> order(layout.slices.size());
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t step = 0;
  do {
    const auto computation = begin(step);
    for (const std::uint32_t s : order) lay(*computation, s);
    ASSERT_TRUE(run_until(io, [&] { return steps.size() == step + 1; }));
    EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
    EXPECT_TRUE(worths.back().finite);
    EXPECT_GE(times.back(), Duration{0});
    ++step;
  } while (step < 6 && std::next_permutation(order.begin(), order.end()));
  EXPECT_TRUE(failures.empty());
}

TEST_F(DeskTest, BeginsWithWhatIsThere) {
  std::promise<void> first_block;
  make({.needed = [&](std::uint64_t block, bool there) {
    if (block == 0 && there) first_block.set_value();
  }});
  const auto computation = begin(0);
  lay(*computation, 0);
  lay(*computation, 1);  // values 0 to 5; the first block has four
  first_block.get_future().wait();
  lay(*computation, 3);
  lay(*computation, 2);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(DeskTest, LetsSlicesGoAsTheyAreMade) {
  std::promise<void> open;
  // From the back: when values 8 to 11 are made, all of the last slice is, which begins at 10.
  make({.made = [&](std::uint64_t block) {
    if (block == 2) open.get_future().wait();
  }});
  const auto computation = begin(0);
  lay_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !slices.empty(); }));
  EXPECT_EQ(slices[0].slice, 3U);
  EXPECT_TRUE(steps.empty());
  open.set_value();
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  const std::vector<float> expected = by_hand(computation->order, linear_start());
  std::set<std::uint32_t> told;
  for (const Slice& slice : slices) {
    EXPECT_TRUE(told.insert(slice.slice).second) << "slice " << slice.slice << " twice";
    const auto from = expected.begin() + static_cast<std::ptrdiff_t>(layout[SliceId{slice.slice}].offset);
    EXPECT_EQ(slice.values, std::vector<float>(from, from + static_cast<std::ptrdiff_t>(slice.values.size())));
  }
  EXPECT_EQ(told.size(), layout.slices.size());
}

TEST_F(DeskTest, AnEmulatedDeviceHasEverythingAtItsEnd) {
  make({}, a_device(1e9));
  const auto computation = begin(0);
  lay_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_TRUE(slices.empty());
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(DeskTest, AnEmulatedDeviceWithACadenceLetsSlicesGoWhenTheirTimeHasCome) {
  constexpr double samples_per_second = 40;  // 8 samples: 0.2 s
  const store::Cadence cadence{{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}};
  make({}, a_device(samples_per_second), cadence);
  const auto computation = begin(0);
  lay_all(*computation);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  std::vector<std::uint32_t> order;
  for (const Slice& slice : slices) order.push_back(slice.slice);
  EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), layout.slices.size());
  EXPECT_LT(std::find(order.begin(), order.end(), 2U), std::find(order.begin(), order.end(), 0U));
  for (const Slice& slice : slices) EXPECT_GE(slice.at_s, cadence.made[slice.slice] * 8 / samples_per_second) << "slice " << slice.slice;
  EXPECT_GE(seconds(times.at(0)), 8 / samples_per_second);
  EXPECT_EQ(held(*computation->out), by_hand(computation->order, linear_start()));
}

TEST_F(DeskTest, AnEmulatedDeviceWithACadenceStandsStillForWhatComesLate) {
  constexpr double late_s = 0.03;
  make({}, a_device(400), {{0, 0.1, 0.2, 0}, {1, 0.8, 0.6, 1}});
  const auto computation = begin(0);
  for (const std::uint32_t s : {0U, 1U, 3U}) lay(*computation, s);
  while (seconds(clock.now() - computation->began) < late_s) std::this_thread::yield();
  lay(*computation, 2);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_GE(seconds(stood.at(0)), late_s - 0.2 * 8 / 400) << "it reads that slice after a fifth";
  EXPECT_GE(seconds(clock.now() - computation->began), seconds(stood.at(0)) + 8.0 / 400) << "the rest comes so much later";
}

TEST_F(DeskTest, ADeviceThatHadWorkLeftWhileValuesCameHasComputedAllTheTime) {
  constexpr double late_s = 0.03;
  for (const std::optional<Duration> told : {std::optional<Duration>(), std::optional(Duration{0})}) {
    make({.stood = told});
    const auto computation = begin(0);
    for (const std::uint32_t s : {0U, 1U, 3U}) lay(*computation, s);
    const Instant since = clock.now();
    while (seconds(clock.now() - since) < late_s) std::this_thread::yield();
    lay(*computation, 2);
    ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
    if (told) {
      EXPECT_EQ(stood.back(), Duration{0});
      EXPECT_GE(seconds(times.back()), late_s / 2);
    } else {
      EXPECT_GE(seconds(stood.back()), late_s / 2);
    }
    steps.clear();
  }
}

TEST_F(DeskTest, AnotherOrderTakesThePlaceOfOneThatStillWaitsForItsValues) {
  make();
  begin(0);  // never gets its values
  const auto second = begin(1);
  lay_all(*second);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));
  EXPECT_EQ(steps, std::vector<std::uint64_t>{1});
  for (const Slice& slice : slices) EXPECT_EQ(slice.step, 1U);
}

TEST_F(DeskTest, AbandonedWhileItNeedsValuesItGivesUpAndSaysNothing) {
  std::promise<pid_t> begun;
  std::promise<bool> there;
  make({.before = [&] { begun.set_value(gettid()); }, .needed = [&](std::uint64_t, bool got) { there.set_value(got); }});
  begin(0);
  await_asleep(begun.get_future().get());
  desk->abandon();
  EXPECT_FALSE(there.get_future().get());
  desk.reset();
  run_ready(io);
  EXPECT_TRUE(steps.empty() && slices.empty() && failures.empty());
}

TEST_F(DeskTest, AbandonedBeforeItBeginsItNeverDoes) {
  Gate gate;
  gate.close();
  int begun = 0;
  make({.before = [&] {
    ++begun;
    gate.pass();
  }});
  begin(0);
  begin(1);  // behind it on the desk's thread, if that has begun
  desk->abandon();
  gate.open();
  desk.reset();
  EXPECT_LE(begun, 1);
  run_ready(io);
  EXPECT_TRUE(steps.empty() && failures.empty());
}

TEST_F(DeskTest, AbandonedWhileItsDeviceIsSlowItEndsAtOnce) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }}, a_device(1e-6));  // eight samples take three months
  const auto computation = begin(0);
  lay_all(*computation);
  await_asleep(done.get_future().get());
  desk->abandon();
  desk.reset();  // waits for its thread
  run_ready(io);
  EXPECT_TRUE(steps.empty() && failures.empty());
}

TEST_F(DeskTest, DestroyedWhileItsDeviceIsSlowItEndsAtOnce) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }}, a_device(1e-6));
  const auto computation = begin(0);
  lay_all(*computation);
  await_asleep(done.get_future().get());
  desk.reset();
  run_ready(io);
  EXPECT_TRUE(steps.empty());
}

TEST_F(DeskTest, WhatIsOnItsWayToThePumpWhenAbandonedIsNotReported) {
  std::promise<pid_t> done;
  make({.after = [&] { done.set_value(gettid()); }});
  const auto computation = begin(0);
  lay_all(*computation);
  await_asleep(done.get_future().get());  // slices and the end wait on the pump, which has not turned
  desk->abandon();
  run_ready(io);
  EXPECT_TRUE(steps.empty() && slices.empty());
}

TEST_F(DeskTest, SaysWhenTheMathematicsGivesUp) {
  make({.before = [] { throw std::runtime_error("no memory"); }});
  begin(0);
  ASSERT_TRUE(run_until(io, [&] { return !failures.empty(); }));
  EXPECT_EQ(failures, std::vector<std::string>{"no memory"});
  EXPECT_TRUE(steps.empty());
}

TEST_F(DeskTest, DoesNotSayThatAnAbandonedOneGaveUp) {
  std::promise<void> begun, open;
  int runs = 0;
  make({.before = [&] {
    if (++runs > 1) return;
    begun.set_value();
    open.get_future().wait();
    throw std::runtime_error("no memory");
  }});
  begin(0);
  begun.get_future().wait();
  const auto second = begin(1);  // instead
  open.set_value();
  lay_all(*second);
  ASSERT_TRUE(run_until(io, [&] { return !steps.empty(); }));  // the first one's end came before
  EXPECT_TRUE(failures.empty());
}

TEST(Arrival, KnowsWhichSlicesAStretchTouches) {
  const store::Layout layout = linear_layout();  // [0,3) [3,6) [6,10) [10,13)
  Arrival arrival(layout, make_buffer(layout.values));
  arrival.arrived(SliceId{1});
  EXPECT_TRUE(arrival.await(3, 6));
  EXPECT_TRUE(arrival.await(4, 5));
  EXPECT_TRUE(arrival.await(5, 5));
  arrival.arrived(SliceId{0});
  EXPECT_TRUE(arrival.await(0, 4));
  arrival.cancel();
  EXPECT_FALSE(arrival.await(0, 13));  // not all there, and nobody waits for it any more
  EXPECT_FALSE(arrival.await(0, 3));
}

TEST_F(DeskTest, ADeviceWithAGrainDoesInOnePieceWhatItHasTimeFor) {
  make({}, std::nullopt, {}, 4);
  const Duration no_time{1};
  for (std::uint64_t step = 0; step < 4; ++step) {
    lay_all(*begin(step, step == 3 ? from_seconds(1e6) : no_time));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  EXPECT_EQ(worths[0].samples, 8U) << "it does not know yet how long a sample takes";
  EXPECT_EQ(worths[1].samples, 4U) << "a grain at least";
  EXPECT_EQ(worths[2].samples, 4U);
  EXPECT_EQ(worths[3].samples, 8U) << "there is time for all of them";
}

TEST_F(DeskTest, TheFirstStepOfEachSizeIsNamed) {
  make({}, std::nullopt, {}, 4, /*meets_sizes=*/true);
  std::optional<cluster::Affine> pace;
  desk->warm_up([&](const auto& measured) { pace = measured; });
  run_until(io, [&] { return pace.has_value(); });
  EXPECT_GT(pace->per_sample, 0) << "of the usual size and half of it, which are known from now on";
  EXPECT_GE(pace->fixed, 0);
  for (std::uint64_t step = 0; step < 5; ++step) {
    lay_all(*begin(step, step < 3 ? Duration{} : Duration{1}));
    run_until(io, [&] { return steps.size() == step + 1; });
  }
  std::vector<std::pair<std::uint64_t, bool>> sizes;
  for (std::size_t i = 0; i < worths.size(); ++i) sizes.emplace_back(worths[i].samples, first_of_size[i]);
  EXPECT_EQ(sizes, (std::vector<std::pair<std::uint64_t, bool>>{{8, true}, {8, false}, {8, false}, {4, true}, {4, false}}));
}

TEST_F(DeskTest, ADeviceThatNeedsNoWarmingUpTellsNoSpeed) {
  bool told = false;
  make({}, std::nullopt, {}, 0, false, /*usual=*/0);
  desk->warm_up([&](const auto& pace) {
    told = true;
    EXPECT_FALSE(pace.has_value());
  });
  run_until(io, [&] { return told; });
  EXPECT_TRUE(told);
}

}  // namespace
}  // namespace motley::run
