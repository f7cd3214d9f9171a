// When the event loop counts as paused.
#include "runtime/pause_detector.h"

#include <gtest/gtest.h>

namespace motley::runtime {
namespace {

TEST(PauseDetectors, Find_pauses_that_peers_could_be_expelled_for) {
  const auto at = [](double s) { return Instant{from_seconds(s)}; };
  PauseDetector pauses(from_seconds(1), from_seconds(8));
  EXPECT_EQ(pauses.run(at(4)), Duration{0}) << "half of the deadline";
  EXPECT_EQ(pauses.paused(at(9)), from_seconds(5));
  EXPECT_EQ(pauses.run(at(9)), from_seconds(5));
  EXPECT_EQ(pauses.paused(at(10)), Duration{0});
  PauseDetector strict(from_seconds(1), from_seconds(0.5));
  EXPECT_EQ(strict.run(at(1)), Duration{0}) << "it runs twice a heartbeat at best";
  EXPECT_GT(strict.run(at(2.1)), Duration{0});
}

}  // namespace
}  // namespace motley::runtime
