// The state machine of a worker's time: what each event ends, and that the dead do nothing.
#include "trace/activity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

namespace motley::trace {
namespace {

/// "w0 compute 2-5", for each stretch that this event ends.
std::string ended_by(Activity& activity, double at_s, Kind kind, std::uint32_t worker = 0, double value = 0) {
  constexpr std::array names{"compute", "send", "wait", "receive"};
  std::string out;
  for (const auto& [who, stretch] : activity.on_event({.at = at_seconds(at_s), .kind = kind, .worker = {worker}, .value = value}))
    out += fmt::format("{}w{} {} {}-{}", out.empty() ? "" : ", ", who.value, names.at(static_cast<std::size_t>(stretch.phase)),
                       seconds(stretch.from), seconds(stretch.to));
  return out;
}

TEST(Activity, GoesThroughAStep) {
  Activity activity;
  EXPECT_EQ(ended_by(activity, 1, Kind::joined), "");
  EXPECT_EQ(ended_by(activity, 2, Kind::released), "w0 wait 1-2");
  EXPECT_EQ(ended_by(activity, 3, Kind::compute_began), "w0 receive 2-3");
  EXPECT_EQ(ended_by(activity, 5, Kind::compute_ended), "w0 compute 3-5");
  EXPECT_EQ(ended_by(activity, 6, Kind::contributed), "w0 send 5-6");
  EXPECT_EQ(ended_by(activity, 7, Kind::held), "");
  EXPECT_EQ(ended_by(activity, 8, Kind::released), "w0 wait 6-8");
  EXPECT_EQ(ended_by(activity, 9, Kind::dropped), "w0 receive 8-9");
}

TEST(Activity, StandingStillForParametersIsReceiving) {
  Activity activity;
  ended_by(activity, 1, Kind::joined);
  ended_by(activity, 2, Kind::released);
  ended_by(activity, 3, Kind::compute_began);
  EXPECT_EQ(ended_by(activity, 8, Kind::compute_ended, 0, 2), "w0 receive 3-5, w0 compute 5-8");
  ended_by(activity, 9, Kind::contributed);
  ended_by(activity, 9, Kind::compute_began);
  EXPECT_EQ(ended_by(activity, 10, Kind::compute_ended, 0, 7), "w0 receive 9-10, w0 compute 10-10") << "it says more than there was";
}

TEST(Activity, WhoLeftDoesNothingMore) {
  Activity activity;
  ended_by(activity, 0, Kind::joined);
  ended_by(activity, 1, Kind::compute_began);
  EXPECT_EQ(ended_by(activity, 2, Kind::left), "w0 compute 1-2");
  EXPECT_EQ(ended_by(activity, 3, Kind::compute_ended), "");
  EXPECT_EQ(ended_by(activity, 4, Kind::finished), "");
}

TEST(Activity, TheEndEndsWhatEverybodyDoes) {
  Activity activity;
  ended_by(activity, 0, Kind::joined, 0);
  ended_by(activity, 1, Kind::joined, 1);
  ended_by(activity, 2, Kind::compute_began, 1);
  EXPECT_EQ(ended_by(activity, 3, Kind::finished), "w0 wait 0-3, w1 compute 2-3");
  EXPECT_EQ(ended_by(activity, 4, Kind::compute_ended, 1), "");
}

}  // namespace
}  // namespace motley::trace
