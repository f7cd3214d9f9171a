// A shard: when a contribution is complete, what is freed and committed, and the order in which parameters are sent.
#include "protocol/shard.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/match.h"

namespace motley::protocol {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};

/// Server 1 of several, with slices 2, 5 and 7.
struct ShardTest : testing::Test {
  Shard shard{ServerId{1}, {SliceId{2}, SliceId{5}, SliceId{7}}};

  /// The shard's actions, in one word or two each.
  std::string step(const wire::Message& message) {
    ShardActions actions;
    shard.step(message, actions);
    std::string text;
    for (const ShardAction& action : actions) text += (text.empty() ? "" : ", ") + describe(action);
    return text;
  }
  static std::string describe(const ShardAction& action) {
    return std::visit(
        match{[](const Send& send) {
                if (const auto* whole = std::get_if<wire::Gathered>(&send.message))
                  return fmt::format("gathered w{}/{}", whole->worker.value, whole->step.value);
                const auto& slice = std::get<wire::Pulled>(send.message);
                return fmt::format("slice {} v{} to w{}/{}", slice.slice.value, slice.version.value, slice.worker.value, slice.step.value);
              },
              [](const Commit& commit) { return fmt::format("commit v{}", commit.update.version.value); },
              [](const Speculate& one) { return fmt::format("speculate {}", one.slice.value); },
              [](const Free& free) { return fmt::format("free w{}/{}", free.worker.value, free.step.value); },
              [](const Snapshot& copy) { return fmt::format("snapshot for w{}/{} rho {}", copy.worker.value, copy.step.value, copy.rho); },
              [](const ExportNow& out) { return fmt::format("export v{}", out.version.value); },
              [](const Compare& one) { return fmt::format("compare w{}/{}", one.worker.value, one.step.value); },
              [](const ProveAlive&) { return std::string("prove that it is alive"); },
              [](const ForgetSent& gone) { return fmt::format("forget what w{} was sent", gone.worker.value); }},
        action);
  }
  std::string push(WorkerId worker, std::uint64_t at, std::uint32_t slice) {
    return step(wire::Push{worker, Step{at}, SliceId{slice}, 32});
  }
  std::string push_all(WorkerId worker, std::uint64_t at) {
    push(worker, at, 2);
    push(worker, at, 7);
    return push(worker, at, 5);
  }
  static wire::Apply update(std::uint64_t version, const std::vector<wire::Part>& parts) {
    return {Version{version}, wire::UpdateKind::gradient, 0.1, 0.9, 1, parts};
  }
};

TEST_F(ShardTest, Bf16_worker_is_sent_bf16_unless_encoded) {
  for (const bool bf16_transfer : {false, true})
    for (const std::uint8_t bits : {32, 16, 4}) {
      ShardActions actions;
      for (const std::uint64_t at : {1U, 2U})  // the first pull of a class gets the values
        shard.step(wire::Release{ann, Step{at}, 0, bits, bits, false, bf16_transfer}, actions);
      const auto& snapshot = std::get<Snapshot>(actions[actions.size() - 4]);
      const auto& slice = std::get<wire::Pulled>(std::get<Send>(actions.back()).message);
      EXPECT_EQ(snapshot.bf16_transfer, bf16_transfer && bits == 32);
      EXPECT_EQ(slice.rounded, bf16_transfer && bits == 32);
      EXPECT_EQ(slice.bits, bf16_transfer && bits == 32 ? 16 : snapshot.whole ? 32 : bits);
    }
}

TEST_F(ShardTest, Duplicate_or_foreign_slice_does_not_count) {
  EXPECT_EQ(push(ann, 1, 7), "");
  EXPECT_EQ(push(ann, 1, 7), "");
  EXPECT_EQ(push(ann, 1, 3), "") << "belongs to another server";
  EXPECT_EQ(push(ann, 1, 99), "") << "lives nowhere";
  EXPECT_EQ(push(ann, 1, 2), "");
  EXPECT_EQ(push(ann, 1, 5), "gathered w0/1");
}

TEST_F(ShardTest, Sends_Gathered_after_the_last_slice) {
  EXPECT_EQ(push(ann, 1, 7), "");
  EXPECT_EQ(push(bob, 1, 2), "") << "another worker's slice does not count";
  EXPECT_EQ(push(ann, 1, 2), "");
  EXPECT_EQ(push(ann, 1, 5), "gathered w0/1");
}

TEST_F(ShardTest, Commits_complete_contributions) {
  push_all(ann, 1);
  push_all(bob, 1);
  EXPECT_EQ(step(update(1, {{ann, Step{1}, 0.5}, {bob, Step{1}, 0.5}})), "commit v1");
  EXPECT_EQ(shard.version(), Version{1});
}

TEST_F(ShardTest, Applying_twice_is_a_bug) {
  push_all(ann, 1);
  step(update(1, {{ann, Step{1}, 1}}));
  EXPECT_THROW(step(update(2, {{ann, Step{1}, 1}})), Bug);
}

TEST_F(ShardTest, Update_out_of_order_is_a_bug) {
  push_all(ann, 1);
  EXPECT_THROW(step(update(2, {{ann, Step{1}, 1}})), Bug);
  EXPECT_THROW(step(update(0, {{ann, Step{1}, 1}})), Bug);
}

TEST_F(ShardTest, Update_of_an_incomplete_contribution_is_a_bug) {
  push(ann, 1, 2);
  EXPECT_THROW(step(update(1, {{ann, Step{1}, 1}})), Bug);
}

TEST_F(ShardTest, Discard_frees_the_received_slices) {
  push(ann, 1, 2);
  push_all(bob, 1);
  EXPECT_EQ(step(wire::Discard{ann, Step{1}}), "free w0/1");
  EXPECT_EQ(step(wire::Discard{ann, Step{1}}), "") << "no slice is left to free";
  EXPECT_EQ(step(wire::Discard{ann, Step{2}}), "");
  EXPECT_EQ(step(update(1, {{bob, Step{1}, 1}})), "commit v1");
}

TEST_F(ShardTest, Slices_of_a_discarded_step_are_freed_on_arrival) {
  push(ann, 1, 5);
  EXPECT_EQ(step(wire::Discard{ann, Step{1}}), "free w0/1");
  EXPECT_EQ(step(wire::Discard{ann, Step{2}}), "") << "cancelled before any slice arrived";
  EXPECT_EQ(push(ann, 1, 2), "free w0/1");
  EXPECT_EQ(push(ann, 1, 7), "free w0/1");
  EXPECT_EQ(push(ann, 2, 7), "free w0/2");
  EXPECT_EQ(shard.contributions_held(), 0U);
  EXPECT_EQ(push_all(ann, 3), "gathered w0/3") << "the next one counts";
}

TEST_F(ShardTest, Compares_a_contribution_with_the_momentum) {
  push_all(ann, 1);
  EXPECT_EQ(step(wire::AlignmentTest{ann, Step{1}}), "compare w0/1");
  EXPECT_EQ(step(update(1, {{ann, Step{1}, 1}})), "commit v1") << "it is still present";
}

TEST_F(ShardTest, Snapshot_says_whether_to_keep_a_copy) {
  ShardActions actions;
  shard.step(wire::Release{ann, Step{1}, 0.9, 32, 0, true}, actions);
  EXPECT_TRUE(std::get<Snapshot>(actions.front()).keep);
  actions.clear();
  shard.step(wire::Release{ann, Step{2}, 0.9, 32, 0}, actions);
  EXPECT_FALSE(std::get<Snapshot>(actions.front()).keep);
}

TEST_F(ShardTest, Forget_frees_incomplete_contributions_only) {
  push_all(ann, 1);
  push(ann, 2, 5);
  push(bob, 1, 5);
  EXPECT_EQ(step(wire::Forget{ann}), "forget what w0 was sent, free w0/2");
  EXPECT_EQ(step(update(1, {{ann, Step{1}, 1}})), "commit v1") << "it was complete before its worker left";
  push(bob, 1, 2);
  EXPECT_EQ(push(bob, 1, 7), "gathered w1/1");
}

TEST_F(ShardTest, Slices_of_a_former_member_are_ignored) {
  push(ann, 1, 2);
  step(wire::Forget{ann});
  EXPECT_EQ(push_all(ann, 1), "");
  EXPECT_EQ(push_all(ann, 2), "");
}

TEST_F(ShardTest, Release_makes_a_copy_and_sends_it_in_order) {
  EXPECT_EQ(step(wire::Release{bob, Step{4}, 0.9, 32}),
            "snapshot for w1/4 rho 0.9, slice 2 v0 to w1/4, slice 5 v0 to w1/4, slice 7 v0 to w1/4");
  push_all(ann, 1);
  step(update(1, {{ann, Step{1}, 1}}));
  EXPECT_EQ(step(wire::Release{bob, Step{5}, 0, 32}),
            "snapshot for w1/5 rho 0, slice 2 v1 to w1/5, slice 5 v1 to w1/5, slice 7 v1 to w1/5");
}

// Speculation ----------------------------------------------------------------------------------------------------------------------------

struct SpeculationTest : ShardTest {
  std::string arrive(WorkerId worker, std::uint64_t at, std::uint32_t slice) {
    ShardActions actions;
    shard.slice_arrived(wire::Push{worker, Step{at}, SliceId{slice}, 32}, actions);
    return actions.empty() ? "" : describe(actions.at(0));
  }
  /// All slices of both arrive and count. Returns which were speculated.
  std::string arrive_all(std::uint64_t at) {
    std::string speculated;
    for (const std::uint32_t slice : {2U, 5U, 7U})
      for (const WorkerId worker : {ann, bob}) {
        const std::string action = arrive(worker, at, slice);
        if (!action.empty()) speculated += action + " ";
        push(worker, at, slice);
      }
    return speculated;
  }
  Commit commit(std::uint64_t at) {
    ShardActions actions;
    wire::Apply next = update(at, {{ann, Step{at}, 0.5}, {bob, Step{at}, 0.5}});
    next.next_rate = next.rate;
    shard.step(next, actions);
    return std::get<Commit>(actions.at(0));
  }
  void repeat_until_expected() {
    for (const std::uint64_t at : {1U, 2U}) {
      EXPECT_EQ(arrive_all(at), "");
      EXPECT_EQ(commit(at).expects_next, at == 2);
    }
  }
};

TEST_F(SpeculationTest, SlicesAreSpeculatedWhenAllHaveArrived) {
  repeat_until_expected();
  EXPECT_EQ(arrive_all(3), "speculate 2 speculate 5 speculate 7 ");
  const Commit made = commit(3);
  EXPECT_TRUE(made.speculated);
  EXPECT_TRUE(made.expects_next);
}

TEST_F(SpeculationTest, NamesThePartsOfTheExpectedUpdate) {
  repeat_until_expected();
  ShardActions actions;
  for (const WorkerId worker : {bob, ann}) shard.slice_arrived(wire::Push{worker, Step{3}, SliceId{7}, 32}, actions);
  ASSERT_EQ(actions.size(), 1U);
  const auto& parts = std::get<Speculate>(actions[0]).parts;
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].worker, ann);
  EXPECT_EQ(parts[1].step, Step{3});
}

TEST_F(SpeculationTest, ADiscardedPartEndsTheSpeculation) {
  repeat_until_expected();
  EXPECT_EQ(arrive(ann, 3, 2), "");
  push(ann, 3, 2);
  EXPECT_EQ(step(wire::Discard{ann, Step{3}}), "free w0/3");
  EXPECT_EQ(arrive(bob, 3, 2), "");
}

TEST_F(SpeculationTest, AForgottenPartEndsTheSpeculationUnlessWhole) {
  repeat_until_expected();
  arrive_all(3);
  step(wire::Forget{ann});
  EXPECT_TRUE(commit(3).speculated) << "ann's part was whole";
  arrive(bob, 4, 2);
  step(wire::Forget{bob});
  ShardActions actions;
  shard.slice_arrived(wire::Push{ann, Step{4}, SliceId{2}, 32}, actions);
  EXPECT_TRUE(actions.empty());
}

// Pull classes -------------------------------------------------------------------------------------------------------------------------

struct PullClassTest : ShardTest {
  Version version;

  void commit() {
    push_all(WorkerId{9}, version.value);
    step(update(version.value + 1, {{WorkerId{9}, Step{version.value}, 1}}));
    version = version.next();
  }
  /// The snapshot of this worker: "moves" if its class advances, then "whole" or "change".
  std::string pull(WorkerId worker, std::uint8_t bits = 8, std::uint32_t pull_class = 8, double rho = 0.9) {
    ShardActions actions;
    shard.step(wire::Release{worker, Step{}, rho, bits, pull_class}, actions);
    const auto& snapshot = std::get<Snapshot>(actions.front());
    EXPECT_EQ(snapshot.bits, bits);
    EXPECT_EQ(snapshot.pull_class, pull_class);
    std::string text = snapshot.first_of_class ? "moves, " : "";
    text += snapshot.whole ? "whole" : "change";
    EXPECT_EQ(actions.size(), 4U);
    for (std::size_t i = 1; i < actions.size(); ++i) {
      const auto& pulled = std::get<wire::Pulled>(std::get<Send>(actions[i]).message);
      EXPECT_EQ(pulled.bits, snapshot.whole ? 32 : bits);
      EXPECT_EQ(pulled.version, version);
    }
    return text;
  }
};

TEST_F(PullClassTest, First_pull_gets_values_then_differences) {
  EXPECT_EQ(pull(ann), "moves, whole");
  EXPECT_EQ(pull(bob), "whole") << "the class has this state already";
  for (int i = 0; i < 3; ++i) {
    commit();
    EXPECT_EQ(pull(bob), "moves, change");
    EXPECT_EQ(pull(ann), "change") << "the same difference";
  }
}

TEST_F(PullClassTest, Worker_that_missed_a_difference_gets_values) {
  pull(ann);
  pull(bob);
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
  EXPECT_EQ(pull(bob), "whole") << "it missed the difference in between";
  commit();
  EXPECT_EQ(pull(bob), "moves, change");
}

TEST_F(PullClassTest, Versions_that_no_member_pulled_are_not_missed) {
  pull(ann);
  commit();
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
}

TEST_F(PullClassTest, Second_pull_of_the_same_state_gets_values) {
  pull(ann);
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
  EXPECT_EQ(pull(ann), "whole") << "it has the difference already";
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
}

TEST_F(PullClassTest, Another_look_ahead_advances_the_class) {
  pull(ann);
  pull(bob);
  EXPECT_EQ(pull(ann, 8, 8, 1.71), "moves, change");
  EXPECT_EQ(pull(bob, 8, 8, 1.71), "change");
}

TEST_F(PullClassTest, Worker_that_changes_class_gets_values) {
  pull(ann);
  pull(bob, 4, 4);
  commit();
  EXPECT_EQ(pull(bob, 4, 4), "moves, change");
  EXPECT_EQ(pull(ann, 4, 4), "whole");
  commit();
  EXPECT_EQ(pull(ann, 4, 4), "moves, change");
  EXPECT_EQ(pull(ann, 8, 8), "moves, whole") << "its earlier state of that class is dropped";
}

TEST_F(PullClassTest, After_a_pull_of_floats_the_next_gets_values) {
  pull(ann);
  commit();
  EXPECT_EQ(pull(ann, 32, 8), "moves, whole");
  commit();
  EXPECT_EQ(pull(ann), "moves, whole");
  commit();
  EXPECT_EQ(pull(ann), "moves, change");
}

TEST_F(PullClassTest, Former_member_does_not_block_its_class) {
  pull(ann);
  pull(bob);
  step(wire::Forget{ann});
  commit();
  EXPECT_EQ(pull(bob), "moves, change");
  EXPECT_EQ(pull(WorkerId{2}), "whole") << "a new worker";
  commit();
  EXPECT_EQ(pull(WorkerId{2}), "moves, change");
}

// ----------------------------------------------------------------------------------------------------------------------------------------

TEST_F(ShardTest, Exports_the_newest_version_only) {
  EXPECT_EQ(step(wire::Export{Version{0}}), "export v0");
  EXPECT_THROW(step(wire::Export{Version{1}}), Bug);
}

TEST_F(ShardTest, Messages_for_other_roles_change_nothing) {
  EXPECT_EQ(step(wire::Hello{}), "");
  EXPECT_EQ(step(wire::Contributed{}), "");
  EXPECT_EQ(step(wire::Heartbeat{}), "");
  EXPECT_EQ(step(wire::Leaving{}), "");
  EXPECT_EQ(step(wire::Welcome{}), "");
  EXPECT_EQ(step(wire::Order{}), "");
  EXPECT_EQ(step(wire::Fenced{}), "");
  EXPECT_EQ(step(wire::Stop{}), "");
  EXPECT_EQ(step(wire::Gathered{}), "");
  EXPECT_EQ(step(wire::Pulled{}), "");
  EXPECT_EQ(shard.version(), Version{0});
}

TEST(Shard, Server_without_slices_is_a_bug) { EXPECT_THROW(Shard(ServerId{0}, {}), Bug); }

}  // namespace
}  // namespace motley::protocol
