// One stage by itself: what it does next, told by hand.
#include "protocol/stage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/match.h"

namespace motley::protocol {
namespace {

using pipeline::Part;

/// "F0, output 0, B0 ..." for each answer; a forward that lacks updates says so.
struct Recorded {
  explicit Recorded(StageOptions options) : stage(std::move(options)) {}
  std::string step(const StageEvent& event) {
    StageActions actions;
    stage.step(event, actions);
    std::string out;
    for (const StageAction& action : actions)
      out += (out.empty() ? "" : ", ") + std::visit(match{[](const RunPart& a) {
                                                            return fmt::format("{}{}{}", "FBW"[static_cast<int>(a.part)], a.micro,
                                                                               a.late > 0 ? fmt::format(" lacks {}", a.late) : "");
                                                          },
                                                          [](const ShipOutput& a) { return fmt::format("output {}", a.micro); },
                                                          [](const ShipGradient& a) { return fmt::format("gradient {}", a.micro); },
                                                          [](const CommitMiniBatch& a) { return fmt::format("commit {}", a.mini); }},
                                                    action);
    return out;
  }
  std::string start() { return step(StageStarted{}); }
  std::string done(Part part, std::uint64_t micro) { return step(PartDone{part, micro}); }
  std::string input(std::uint64_t micro) { return step(InputHere{micro}); }
  std::string gradient(std::uint64_t micro) { return step(GradientHere{micro}); }
  Stage stage;
};

pipeline::Schedule schedule(std::uint32_t micros, std::vector<std::uint32_t> held) {
  pipeline::Schedule made;
  made.micro_batches = micros;
  made.max_in_flight = std::move(held);
  return made;
}

TEST(Stage, AloneWithOneMicroBatchIsPlainTraining) {
  Recorded stage({schedule(1, {1}), 0, 1, 2});
  EXPECT_EQ(stage.start(), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "B0");
  EXPECT_EQ(stage.done(Part::input, 0), "W0");
  EXPECT_EQ(stage.done(Part::weight, 0), "commit 0, F1");
  stage.done(Part::forward, 1);
  stage.done(Part::input, 1);
  EXPECT_EQ(stage.done(Part::weight, 1), "commit 1") << "and that was all";
  EXPECT_TRUE(stage.stage.finished());
}

TEST(Stage, BeginsNoMoreThanItMayUntilItHearsOfMore) {
  Recorded stage({schedule(1, {2, 1}), 0, 2, 4, 3});
  EXPECT_EQ(stage.start(), "F3") << "where it was told to begin";
  EXPECT_EQ(stage.done(Part::forward, 3), "output 3");
  stage.gradient(3);
  stage.done(Part::input, 3);
  EXPECT_EQ(stage.done(Part::weight, 3), "commit 3");
  EXPECT_TRUE(stage.stage.finished());
  EXPECT_EQ(stage.step(MoreMiniBatches{6}), "F4");
  EXPECT_FALSE(stage.stage.finished());
  EXPECT_EQ(stage.step(MoreMiniBatches{2}), "") << "never fewer";
  stage.done(Part::forward, 4);
  stage.gradient(4);
  stage.done(Part::input, 4);
  EXPECT_EQ(stage.done(Part::weight, 4), "commit 4, F5");
}

TEST(Stage, HoldsNoMoreThanItMayAndGoesBackwardFirst) {
  Recorded stage({schedule(4, {2, 1}), 0, 2, 1});
  EXPECT_EQ(stage.start(), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "output 0, F1");
  EXPECT_EQ(stage.done(Part::forward, 1), "output 1") << "it holds two";
  EXPECT_EQ(stage.gradient(0), "B0");
  EXPECT_EQ(stage.done(Part::input, 0), "W0");
  EXPECT_EQ(stage.gradient(1), "") << "busy";
  EXPECT_EQ(stage.done(Part::weight, 0), "B1");
}

TEST(Stage, NeitherMayBeSaidOutOfOrder) {
  Recorded stage({schedule(2, {2, 1}), 1, 2, 1});
  EXPECT_EQ(stage.start(), "") << "nothing has come";
  EXPECT_EQ(stage.input(1), "") << "not the next";
  EXPECT_EQ(stage.gradient(0), "") << "nobody is behind it";
  EXPECT_EQ(stage.input(0), "F0");
  EXPECT_EQ(stage.done(Part::input, 0), "") << "it does something else";
  EXPECT_EQ(stage.done(Part::forward, 0), "B0");
}

TEST(Stage, UnderGpipeEveryForwardComesFirst) {
  pipeline::Schedule gpipe = schedule(2, {2, 2});
  gpipe.forwards_first = true;
  Recorded stage({gpipe, 1, 2, 1});
  stage.start();
  EXPECT_EQ(stage.input(0), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "") << "the second has not come";
  EXPECT_EQ(stage.input(1), "F1");
  EXPECT_EQ(stage.done(Part::forward, 1), "B0");
}

TEST(Stage, RunsAheadOfItsUpdatesAsFarAsItMay) {
  pipeline::Schedule ahead = schedule(1, {4, 1});
  ahead.ahead = 1;
  Recorded stage({ahead, 0, 2, 9});
  EXPECT_EQ(stage.start(), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "output 0, F1 lacks 1");
  EXPECT_EQ(stage.done(Part::forward, 1), "output 1") << "a third would lack two";
  stage.gradient(0);
  stage.done(Part::input, 0);
  EXPECT_EQ(stage.done(Part::weight, 0), "commit 0, F2 lacks 1");
}

TEST(Stage, WeightsSetApartWaitForAnIdleMomentButTwoAtMost) {
  pipeline::Schedule deferred = schedule(8, {8, 1});
  deferred.defers_weight_gradients = true;
  Recorded stage({deferred, 0, 2, 1});
  stage.start();
  for (std::uint64_t k = 0; k < 3; ++k) stage.done(Part::forward, k);
  stage.gradient(0);
  stage.gradient(1);
  stage.gradient(2);
  EXPECT_EQ(stage.done(Part::forward, 3), "output 3, B0");
  EXPECT_EQ(stage.done(Part::input, 0), "B1");
  EXPECT_EQ(stage.done(Part::input, 1), "B2");
  EXPECT_EQ(stage.done(Part::input, 2), "W0") << "three wait";
  EXPECT_EQ(stage.done(Part::weight, 0), "F4") << "forward is better than the rest of them";
}

TEST(Stage, TheLastMiniBatchMayHaveFewerMicroBatches) {
  pipeline::Schedule gpipe = schedule(3, {3});
  gpipe.forwards_first = true;
  Recorded stage({gpipe, 0, 1, 2, 1, 4});  // it begins with the second mini-batch, which has one
  EXPECT_EQ(stage.start(), "F3");
  EXPECT_EQ(stage.done(Part::forward, 3), "B3") << "there is no other forward to wait for";
  EXPECT_EQ(stage.done(Part::input, 3), "W3");
  EXPECT_FALSE(stage.stage.finished());
  EXPECT_EQ(stage.done(Part::weight, 3), "commit 1") << "and that was all";
  EXPECT_TRUE(stage.stage.finished());
  EXPECT_EQ(stage.stage.committed(), 2U);
}

}  // namespace
}  // namespace motley::protocol
