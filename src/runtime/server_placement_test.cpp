// Which servers are there, and where the slices go.
#include "runtime/server_placement.h"

#include <gtest/gtest.h>

#include "runtime/linear_source_for_tests.h"

namespace motley::runtime {
namespace {

TEST(ServerPlacements, Each_server_of_the_job_registers_once) {
  ServerPlacement servers(linear_layout(3), 1e6);
  EXPECT_FALSE(servers.is_free(ServerId{0}));
  EXPECT_TRUE(servers.is_free(ServerId{2}));
  EXPECT_FALSE(servers.is_free(ServerId{3}));
  servers.add(ServerId{2}, "there:1", from_seconds(0.01));
  EXPECT_FALSE(servers.is_free(ServerId{2}));
  EXPECT_FALSE(servers.complete());
  servers.add(ServerId{1}, "here:1", Duration{-1});
  EXPECT_TRUE(servers.complete());
  EXPECT_EQ(servers.addresses(), (std::vector<std::string>{"", "here:1", "there:1"}));
  EXPECT_EQ(servers.distance_s(ServerId{1}), 0) << "clocks differ";
  EXPECT_EQ(servers.distance_s(ServerId{2}), 0.005);
}

TEST(ServerPlacements, Slices_stay_where_no_server_is_far) {
  ServerPlacement servers(linear_layout(2), 1e6);
  servers.add(ServerId{1}, "here:1", Duration{1});
  EXPECT_FALSE(servers.place_slices());
  EXPECT_EQ(servers.head_starts(), (std::vector<std::uint64_t>{0, 0}));
  EXPECT_EQ(servers.layout().of(ServerId{1}), linear_layout(2).of(ServerId{1}));
}

TEST(ServerPlacements, Slices_are_placed_anew_where_a_server_is_far) {
  ServerPlacement servers(linear_layout(2), 1e6);
  servers.add(ServerId{1}, "there:1", from_seconds(1));
  EXPECT_TRUE(servers.place_slices());
  EXPECT_GT(servers.head_starts()[1], 0U);
}

TEST(ServerPlacements, One_server_is_complete) { EXPECT_TRUE(ServerPlacement(linear_layout(1), 1e6).complete()); }

}  // namespace
}  // namespace motley::runtime
