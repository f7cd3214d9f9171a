// The phases of a worker: which stretches each event ends, and that a worker that left has none.
#include "trace/activity.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "trace/events_for_tests.h"

namespace motley::trace {
namespace {

/// "w0 compute 2-5", for each stretch that this event ends.
template <class T>
std::string ended_by(Activity& activity, double at_s, std::uint32_t worker = 0, double stalled_s = 0) {
  constexpr std::array names{"compute", "send", "wait", "receive"};
  std::string out;
  Event event = at<T>(at_s, worker);
  if (auto* ended = std::get_if<ComputeEnded>(&event.data)) ended->stalled = from_seconds(stalled_s);
  for (const auto& [id, stretch] : activity.on_event(event))
    out += fmt::format("{}w{} {} {}-{}", out.empty() ? "" : ", ", id.value, names.at(static_cast<std::size_t>(stretch.phase)),
                       seconds(stretch.from), seconds(stretch.to));
  return out;
}

TEST(Activity, GoesThroughAStep) {
  Activity activity;
  EXPECT_EQ(ended_by<Joined>(activity, 1), "");
  EXPECT_EQ(ended_by<Released>(activity, 2), "w0 wait 1-2");
  EXPECT_EQ(ended_by<ComputeBegan>(activity, 3), "w0 receive 2-3");
  EXPECT_EQ(ended_by<ComputeEnded>(activity, 5), "w0 compute 3-5");
  EXPECT_EQ(ended_by<Contributed>(activity, 6), "w0 send 5-6");
  EXPECT_EQ(ended_by<Held>(activity, 7), "");
  EXPECT_EQ(ended_by<Released>(activity, 8), "w0 wait 6-8");
  EXPECT_EQ(ended_by<Dropped>(activity, 9), "w0 receive 8-9");
}

TEST(Activity, WaitingForStreamedParametersIsReceiving) {
  Activity activity;
  ended_by<Joined>(activity, 1);
  ended_by<Released>(activity, 2);
  ended_by<ComputeBegan>(activity, 3);
  EXPECT_EQ(ended_by<ComputeEnded>(activity, 8, 0, 2), "w0 receive 3-5, w0 compute 5-8");
  ended_by<Contributed>(activity, 9);
  ended_by<ComputeBegan>(activity, 9);
  EXPECT_EQ(ended_by<ComputeEnded>(activity, 10, 0, 7), "w0 receive 9-10, w0 compute 10-10") << "a stall is at most the step";
}

TEST(Activity, IgnoresWorkersThatLeft) {
  Activity activity;
  ended_by<Joined>(activity, 0);
  ended_by<ComputeBegan>(activity, 1);
  EXPECT_EQ(ended_by<Left>(activity, 2), "w0 compute 1-2");
  EXPECT_EQ(ended_by<ComputeEnded>(activity, 3), "");
  EXPECT_EQ(ended_by<Finished>(activity, 4), "");
}

TEST(Activity, TheEndOfTheRunEndsAllStretches) {
  Activity activity;
  ended_by<Joined>(activity, 0, 0);
  ended_by<Joined>(activity, 1, 1);
  ended_by<ComputeBegan>(activity, 2, 1);
  EXPECT_EQ(ended_by<Finished>(activity, 3), "w0 wait 0-3, w1 compute 2-3");
  EXPECT_EQ(ended_by<ComputeEnded>(activity, 4, 1), "");
}

}  // namespace
}  // namespace motley::trace
