// Without torch the module loads data and refuses to make a learner.
#include "learn/learner.h"

#include <gtest/gtest.h>

namespace motley::learn {
namespace {

TEST(NoTorch, Refuses_a_learner_with_the_way_to_get_one) {
  auto data = load({.kind = "synthetic", .path = {}});
  ASSERT_TRUE(data.ok());
  const auto learner = make_learner({}, *data);
  ASSERT_FALSE(learner.ok());
  EXPECT_EQ(learner.error().next, Next::tell_user);
  EXPECT_NE(learner.error().message.find("built without torch"), std::string::npos);
  EXPECT_NE(learner.error().message.find("MOTLEY_TORCH=ON"), std::string::npos);
}

TEST(NoTorch, Reports_the_backend_absent) {
  EXPECT_FALSE(available());
  EXPECT_NE(describe_backend().find("without torch"), std::string::npos);
  use_threads(1);
}

}  // namespace
}  // namespace motley::learn
