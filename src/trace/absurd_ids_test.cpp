// Ids of workers that never joined and numbers that no run has: a damaged trace file may hold any event. Every sink accepts them, in
// bounded memory.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "base/match.h"
#include "base/rng.h"
#include "trace/events_for_tests.h"
#include "trace/pipeline.h"
#include "trace/run_history.h"
#include "trace/sinks.h"
#include "trace/state_timelines.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::trace {
namespace {

constexpr std::size_t kinds = std::variant_size_v<EventData>;
constexpr std::array<std::uint64_t, 8> absurd{
    1, 7, 1U << 20U, 4'000'000'000, 0xffffffff, std::uint64_t{1} << 40U, ~std::uint64_t{0} - 1, ~std::uint64_t{0}};

struct Sinks {
  Summary summary;
  Timeline timeline{Instant{}, from_seconds(1e6)};
  StateTimelines state_timelines;
  RunHistory history;
  Pipeline pipeline{0, 100};
  Tee all{{&summary, &timeline, &state_timelines, &history, &pipeline}};

  /// Every reader.
  void read() const {
    (void)summary.workers();
    (void)summary.time();
    (void)summary.overlap_ratio();
    (void)summary.finish_spread();
    (void)timeline.lanes();
    (void)state_timelines.states();
    (void)state_timelines.workers();
    (void)state_timelines.rates();
    (void)history.workers();
    (void)pipeline.utilization();
    (void)pipeline.busiest();
    (void)pipeline.updates_per_second();
  }
};

class EveryKind : public testing::TestWithParam<std::size_t> {
 protected:
  [[nodiscard]] static EventData kind() { return one_of_each().at(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Of, EveryKind, testing::Range(std::size_t{0}, kinds),
                         [](const auto& kind) { return std::string(name_of(one_of_each().at(kind.param))); });

TEST_P(EveryKind, MayHaveAWorkerThatNeverJoined) {
  for (const std::uint64_t number : absurd) {
    Sinks sinks;
    sinks.all.on_event(at<Joined>(1));
    EventData data = kind();
    fill(
        data, [&] { return number; }, 0);
    sinks.all.on_event({at_seconds(2), data});
    sinks.all.on_event(at<Finished>(3));
    sinks.read();
    EXPECT_LE(sinks.summary.workers().size(), 2U) << number;
    EXPECT_LE(sinks.timeline.lanes().size(), 2U) << number;
    EXPECT_LE(sinks.state_timelines.workers().size(), 2U) << number;
    EXPECT_LE(sinks.history.workers().size(), 2U) << number;
    EXPECT_LE(sinks.pipeline.stages().size(), 2U) << number;
  }
}

TEST_P(EveryKind, MayHaveNumbersThatNoRunHas) {
  for (const std::uint64_t number : absurd) {
    Sinks sinks;
    sinks.all.on_event({{}, Joined{.node = static_cast<std::uint32_t>(number)}});
    for (const Event& before : {at<Released>(1, 0, number), at<ComputeBegan>(1, 0, number), at<PartBegan>(1, 0, number),
                                at<Contributed>(1, 0, number), at<Counted>(1, 0, number)})
      sinks.all.on_event(before);
    EventData data = kind();
    fill(
        data, [&] { return number; }, 1e300);
    std::visit(match{[](auto& one) requires(requires {
      one.worker; }) { one.worker = {};
  }
  , [](auto& one) requires(requires { one.stage; }) { one.stage = {}; }
  , [](auto&) {}
},
               data);
sinks.all.on_event({at_seconds(2), data});
sinks.read();
EXPECT_LE(sinks.summary.staleness().size(), 70'000U) << number;
EXPECT_LE(sinks.pipeline.updates_s().size(), 1U) << number;
}  // namespace
}  // namespace motley::trace

TEST(Sinks, KeepABoundedNumberOfWorkersAndSteps) {
  Sinks sinks;
  for (std::uint32_t n = 0; n < 100'000; ++n) {
    sinks.all.on_event(at<Joined>(0, n * 40'000));
    for (const Event& event : {at<Released>(0, 0, n), at<ComputeBegan>(0, 0, n), at<Contributed>(0, 0, n), at<Straggles>(0)})
      sinks.all.on_event(event);
    sinks.all.on_event({{}, Counted{.step = {n}, .samples = n, .staleness = n}});
    sinks.all.on_event({{}, Grouped{.group = n, .groups = n}});
  }
  EXPECT_LE(sinks.summary.workers().size(), 70'000U);
  EXPECT_LE(sinks.state_timelines.workers().size(), 70'000U);
  EXPECT_LE(sinks.history.workers().size(), 70'000U);
  sinks.read();
}

TEST(Sinks, AcceptEventsOfAnyKindInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "sinks");
    Sinks sinks;
    for (int i = 0; i < 300; ++i) {
      const auto small = [&] { return rng.below(4) > 0 ? rng.below(5) : rng.bits() >> rng.below(64); };
      Event event{at_seconds(rng.uniform() * 10), one_of_each().at(rng.below(kinds))};
      fill(event.data, small, rng.normal());
      sinks.all.on_event(event);
    }
    sinks.read();
  }
}

}  // namespace
}  // namespace motley::trace
