// Without torch the room still loads data and says plainly that it cannot learn.
#include "learn/learner.h"

#include <gtest/gtest.h>

namespace motley::learn {
namespace {

TEST(NoTorch, ALearnerIsRefusedWithTheWayToGetOne) {
  auto data = load({.kind = "synthetic", .path = {}});
  ASSERT_TRUE(data.ok());
  const auto learner = make_learner({}, *data);
  ASSERT_FALSE(learner.ok());
  EXPECT_EQ(learner.error().next, Next::tell_user);
  EXPECT_NE(learner.error().message.find("built without torch"), std::string::npos);
  EXPECT_NE(learner.error().message.find("MOTLEY_TORCH=ON"), std::string::npos);
}

TEST(NoTorch, TheBackendIsReportedAbsent) {
  EXPECT_FALSE(available());
  EXPECT_NE(describe_backend().find("without torch"), std::string::npos);
  use_threads(1);
}

}  // namespace
}  // namespace motley::learn
