#include "runtime/attachments.h"

#include <gtest/gtest.h>

#include "runtime/fake_connection_for_tests.h"

namespace motley::runtime {
namespace {

using Answer = Attachments::Answer;

TEST(Attachments, AWorkerIsAttachedByItsKey) {
  Attachments all;
  FakeConnection honest, thief;
  EXPECT_TRUE(all.admitted({{3}, 77}).empty());
  EXPECT_EQ(all.claimed(thief, {{3}, 76}), Answer::refuse);
  EXPECT_EQ(all.claimed(honest, {{3}, 77}), Answer::attach);
  EXPECT_EQ(all.claimed(thief, {{3}, 0}), Answer::refuse);
}

TEST(Attachments, AnEarlyClaimWaitsForTheChief) {
  Attachments all;
  FakeConnection honest, thief, other, gone;
  EXPECT_EQ(all.claimed(thief, {{3}, 1}), Answer::wait);
  EXPECT_EQ(all.claimed(honest, {{3}, 77}), Answer::wait);
  EXPECT_EQ(all.claimed(other, {{4}, 77}), Answer::wait);
  EXPECT_EQ(all.claimed(gone, {{3}, 77}), Answer::wait);
  all.closed(gone);
  const auto answers = all.admitted({{3}, 77});
  ASSERT_EQ(answers.size(), 2U);
  for (const auto& [from, answer] : answers) EXPECT_EQ(answer, from == &honest ? Answer::attach : Answer::refuse);
  EXPECT_TRUE(all.admitted({{3}, 1}).empty());
  EXPECT_EQ(all.claimed(thief, {{3}, 1}), Answer::refuse) << "its claim was answered";
}

TEST(Attachments, AForgottenWorkersKeyIsUnknown) {
  Attachments all;
  FakeConnection honest;
  all.admitted({{3}, 77});
  all.forget({3});
  EXPECT_FALSE(all.knows({3}));
  EXPECT_EQ(all.claimed(honest, {{3}, 77}), Answer::wait);
}

}  // namespace
}  // namespace motley::runtime
