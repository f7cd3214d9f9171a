#include "sim/connections.h"

#include <gtest/gtest.h>

namespace motley::sim {
namespace {

TEST(Connections, EachStartOfANodeOpensANewConnection) {
  Connections connections;
  EXPECT_EQ(connections.open(5), 0U);
  EXPECT_EQ(connections.open(5), 1U);
  EXPECT_EQ(connections.node(1), 5U);
  EXPECT_EQ(connections.member(1), std::nullopt);
}

TEST(Connections, FindsTheConnectionOfAnAdmittedWorker) {
  Connections connections;
  for (const std::uint32_t node : {4U, 6U, 8U}) connections.open(node);
  connections.admit(2, WorkerId{0});
  connections.admit(1, WorkerId{3});
  EXPECT_EQ(connections.of(WorkerId{0}), 2U);
  EXPECT_EQ(connections.node_of(WorkerId{3}), 6U);
  EXPECT_EQ(connections.member(1), WorkerId{3});
  EXPECT_EQ(connections.member(0), std::nullopt);
}

}  // namespace
}  // namespace motley::sim
