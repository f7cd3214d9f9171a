// One stage, driven by hand.
#include "protocol/stage.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "base/match.h"

namespace motley::protocol {
namespace {

using pipeline::Part;

/// "F0, output 0, B0 ..." for the actions; a forward that lacks updates says so.
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

TEST(Stage, Single_stage_with_one_micro_batch_is_plain_training) {
  Recorded stage({schedule(1, {1}), 0, 1, 2});
  EXPECT_EQ(stage.start(), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "B0");
  EXPECT_EQ(stage.done(Part::input, 0), "W0");
  EXPECT_EQ(stage.done(Part::weight, 0), "commit 0, F1");
  stage.done(Part::forward, 1);
  stage.done(Part::input, 1);
  EXPECT_EQ(stage.done(Part::weight, 1), "commit 1") << "no further action";
  EXPECT_TRUE(stage.stage.finished());
}

TEST(Stage, Begins_only_permitted_mini_batches) {
  Recorded stage({schedule(1, {2, 1}), 0, 2, 4, 3});
  EXPECT_EQ(stage.start(), "F3") << "at its first mini-batch";
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

TEST(Stage, Holds_a_bounded_number_and_prefers_backward) {
  Recorded stage({schedule(4, {2, 1}), 0, 2, 1});
  EXPECT_EQ(stage.start(), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "output 0, F1");
  EXPECT_EQ(stage.done(Part::forward, 1), "output 1") << "it holds two";
  EXPECT_EQ(stage.gradient(0), "B0");
  EXPECT_EQ(stage.done(Part::input, 0), "W0");
  EXPECT_EQ(stage.gradient(1), "") << "busy";
  EXPECT_EQ(stage.done(Part::weight, 0), "B1");
}

TEST(Stage, Events_out_of_order_change_nothing) {
  Recorded stage({schedule(2, {2, 1}), 1, 2, 1});
  EXPECT_EQ(stage.start(), "") << "no input has arrived";
  EXPECT_EQ(stage.input(1), "") << "not the next one";
  EXPECT_EQ(stage.gradient(0), "") << "there is no next stage";
  EXPECT_EQ(stage.input(0), "F0");
  EXPECT_EQ(stage.done(Part::input, 0), "") << "another part is running";
  EXPECT_EQ(stage.done(Part::forward, 0), "B0");
}

TEST(Stage, Gpipe_runs_every_forward_first) {
  pipeline::Schedule gpipe = schedule(2, {2, 2});
  gpipe.forwards_first = true;
  Recorded stage({gpipe, 1, 2, 1});
  stage.start();
  EXPECT_EQ(stage.input(0), "F0");
  EXPECT_EQ(stage.done(Part::forward, 0), "") << "the second input has not arrived";
  EXPECT_EQ(stage.input(1), "F1");
  EXPECT_EQ(stage.done(Part::forward, 1), "B0");
}

TEST(Stage, Runs_ahead_of_its_updates_as_permitted) {
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

TEST(Stage, Separate_weight_gradients_wait_but_two_at_most) {
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
  EXPECT_EQ(stage.done(Part::weight, 0), "F4") << "forward precedes the remaining weight gradients";
}

TEST(Stage, Last_mini_batch_may_have_fewer_micro_batches) {
  pipeline::Schedule gpipe = schedule(3, {3});
  gpipe.forwards_first = true;
  Recorded stage({gpipe, 0, 1, 2, 1, 4});  // begins with the second mini-batch, which has one
  EXPECT_EQ(stage.start(), "F3");
  EXPECT_EQ(stage.done(Part::forward, 3), "B3") << "there is no other forward to wait for";
  EXPECT_EQ(stage.done(Part::input, 3), "W3");
  EXPECT_FALSE(stage.stage.finished());
  EXPECT_EQ(stage.done(Part::weight, 3), "commit 1") << "no further action";
  EXPECT_TRUE(stage.stage.finished());
  EXPECT_EQ(stage.stage.committed(), 2U);
}

}  // namespace
}  // namespace motley::protocol
