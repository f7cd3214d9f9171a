// How reported times of parts are corrected by what the pipeline chief knows.
#include "runtime/stage_times.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

constexpr std::uint32_t micros = 2;  // of a mini-batch

/// The forward of a micro-batch.
wire::PartRecord did(std::uint64_t micro, double began_s, double ended_s) {
  return {0, micro, 0, 0, from_seconds(began_s), from_seconds(ended_s)};
}

double busy_s(const std::vector<wire::PartRecord>& parts) {
  double sum = 0;
  for (const wire::PartRecord& part : parts) sum += seconds(part.ended - part.began);
  return sum;
}

/// Two stages, assigned 100 s after training began; mini-batches 0 to 2 may be begun.
StageTimes assigned() {
  StageTimes times;
  times.begin(at_seconds(100), 2, 3);
  return times;
}

TEST(StageTimes, Possible_times_are_accepted) {
  StageTimes times = assigned();
  std::vector<wire::PartRecord> parts{did(0, 100, 101), did(1, 101.5, 103)};
  EXPECT_EQ(times.believe(at_seconds(104), 0, micros, parts), at_seconds(103));
  EXPECT_EQ(parts[0].began, from_seconds(100));
  EXPECT_EQ(parts[1].began, from_seconds(101.5));
  EXPECT_EQ(times.recorded_until(), at_seconds(100)) << "the other stage has reported nothing";
}

TEST(StageTimes, No_stage_works_longer_than_its_assignment_lasts) {
  StageTimes times = assigned();
  std::vector<wire::PartRecord> parts{did(0, 0, 1e6), did(1, 0, 3e9), did(2, 5, 3e9)};
  EXPECT_EQ(times.believe(at_seconds(104), 0, micros, parts), at_seconds(104));
  EXPECT_LE(busy_s(parts), 4);
  for (const wire::PartRecord& part : parts) {
    EXPECT_GE(part.began, from_seconds(100));
    EXPECT_LE(part.began, part.ended);
    EXPECT_LE(part.ended, from_seconds(104));
  }
  std::vector<wire::PartRecord> again{did(2, 100, 104)};
  times.believe(at_seconds(105), 0, micros, again);
  EXPECT_LE(busy_s(again), 1) << "the time before that was reported";
}

TEST(StageTimes, Times_in_the_future_are_moved_to_now) {
  StageTimes times = assigned();
  std::vector<wire::PartRecord> parts{did(0, 3e9, 3e9 + 1)};
  times.believe(at_seconds(104), 0, micros, parts);
  EXPECT_EQ(parts[0].ended, from_seconds(104));
  EXPECT_EQ(parts[0].began, from_seconds(103)) << "a clock that is ahead still measures durations";
}

TEST(StageTimes, A_stage_that_reports_old_times_delays_no_other) {
  StageTimes times = assigned();
  for (std::uint64_t n = 1; n <= 50; ++n) {
    const double now = 100 + static_cast<double>(n);
    std::vector<wire::PartRecord> lies{did((n - 1) * micros, 100, 100)};
    std::vector<wire::PartRecord> honest{did((n - 1) * micros, now - 1, now)};
    times.believe(at_seconds(now), 0, micros, lies);
    times.believe(at_seconds(now), 1, micros, honest);
    times.allow(at_seconds(now), n + 3, n);
    EXPECT_GE(times.recorded_until(), at_seconds(now - 4)) << "mini-batch " << n << " was allowed no earlier";
  }
}

TEST(StageTimes, Durations_of_a_clock_that_is_behind_are_kept) {
  StageTimes times = assigned();
  times.allow(at_seconds(110), 4, 1);
  std::vector<wire::PartRecord> parts{did(3 * micros, 108, 109), did(3 * micros + 1, 109.5, 111)};  // 2 s behind
  times.believe(at_seconds(114), 0, micros, parts);
  EXPECT_EQ(parts[0].began, from_seconds(110));
  EXPECT_NEAR(busy_s(parts), 2.5, 1e-9);
  EXPECT_EQ(parts[1].ended, from_seconds(113));
}

TEST(StageTimes, A_report_has_three_parts_per_open_micro_batch) {
  EXPECT_EQ(most_parts(5, 3, 4), 24U);
  EXPECT_EQ(most_parts(3, 3, 4), 0U);
}

}  // namespace
}  // namespace motley::runtime
