// Ids that nobody was announced by, and numbers that no run has: a sink may be told anything, for a trace file may be damaged. It goes on,
// and its memory does not follow the number.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <string>

#include "base/rng.h"
#include "trace/pipeline.h"
#include "trace/run_history.h"
#include "trace/sinks.h"
#include "trace/state_timelines.h"
#include "trace/summary.h"
#include "trace/timeline.h"

namespace motley::trace {
namespace {

constexpr int kinds = static_cast<int>(Kind::repartition) + 1;
constexpr std::array<std::uint64_t, 8> absurd{
    1, 7, 1U << 20U, 4'000'000'000, 0xffffffff, std::uint64_t{1} << 40U, ~std::uint64_t{0} - 1, ~std::uint64_t{0}};

struct Sinks {
  Summary summary;
  Timeline timeline{Instant{}, from_seconds(1e6)};
  StateTimelines state_timelines;
  RunHistory history;
  Pipeline pipeline{0, 100};
  Tee all{{&summary, &timeline, &state_timelines, &history, &pipeline}};

  /// All that is asked of them afterwards.
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

class EveryKind : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Of, EveryKind, testing::Range(0, kinds),
                         [](const auto& kind) { return std::string(name_of(static_cast<Kind>(kind.param))); });

TEST_P(EveryKind, MayNameAWorkerThatWasNeverAnnounced) {
  for (const std::uint64_t number : absurd) {
    Sinks sinks;
    sinks.all.on_event({.at = at_seconds(1), .kind = Kind::joined, .worker = {0}});
    const auto worker = static_cast<std::uint32_t>(number);
    sinks.all.on_event({.at = at_seconds(2), .kind = static_cast<Kind>(GetParam()), .worker = {worker}, .first = 1, .last = 2});
    sinks.all.on_event({.at = at_seconds(3), .kind = Kind::finished});
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
    sinks.all.on_event({.kind = Kind::joined, .worker = {0}, .first = number});
    for (const Kind before : {Kind::released, Kind::compute_began, Kind::part_began, Kind::contributed, Kind::counted})
      sinks.all.on_event({.at = at_seconds(1), .kind = before, .worker = {0}, .step = {number}});
    sinks.all.on_event({.at = at_seconds(2),
                        .kind = static_cast<Kind>(GetParam()),
                        .why = 255,
                        .epoch = 0xffffffff,
                        .worker = {0},
                        .step = {number},
                        .version = {number},
                        .first = number,
                        .last = number,
                        .value = 1e300,
                        .second = -1e300});
    sinks.read();
    EXPECT_LE(sinks.summary.staleness().size(), 70'000U) << number;
    EXPECT_LE(sinks.pipeline.updates_s().size(), 1U) << number;
  }
}

/// A billion workers of two events each would fill the memory of any machine.
TEST(Sinks, KeepABoundedNumberOfWorkersAndSteps) {
  Sinks sinks;
  for (std::uint32_t n = 0; n < 100'000; ++n) {
    sinks.all.on_event({.kind = Kind::joined, .worker = {n * 40'000}});
    for (const Kind kind : {Kind::released, Kind::compute_began, Kind::contributed, Kind::counted, Kind::straggles, Kind::grouped})
      sinks.all.on_event({.kind = kind, .worker = {0}, .step = {n}, .first = n, .last = n});
  }
  EXPECT_LE(sinks.summary.workers().size(), 70'000U);
  EXPECT_LE(sinks.state_timelines.workers().size(), 70'000U);
  EXPECT_LE(sinks.history.workers().size(), 70'000U);
  sinks.read();
}

TEST(Sinks, TakeEventsOfAnyKindInAnyOrder) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "sinks");
    Sinks sinks;
    for (int i = 0; i < 300; ++i) {
      const auto small = [&] { return rng.below(4) > 0 ? rng.below(5) : rng.bits() >> rng.below(64); };
      sinks.all.on_event({.at = at_seconds(rng.uniform() * 10),
                          .kind = static_cast<Kind>(rng.below(kinds)),
                          .why = static_cast<std::uint8_t>(rng.bits()),
                          .epoch = static_cast<std::uint32_t>(small()),
                          .worker = {static_cast<std::uint32_t>(small())},
                          .step = {small()},
                          .version = {small()},
                          .first = small(),
                          .last = small(),
                          .value = rng.normal(),
                          .second = rng.normal()});
    }
    sinks.read();
  }
}

}  // namespace
}  // namespace motley::trace
