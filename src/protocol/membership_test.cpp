// Membership: ids that are never reused, and silence.
#include "protocol/membership.h"

#include <gtest/gtest.h>

namespace motley::protocol {
namespace {

TEST(Membership, Id_is_given_once) {
  Membership members(from_seconds(5));
  EXPECT_EQ(members.join({}, "a"), WorkerId{0});
  EXPECT_EQ(members.join({}, "b"), WorkerId{1});
  members.leave({0});
  EXPECT_EQ(members.join({}, "a"), WorkerId{2}) << "a rejoining worker gets a new id";
  EXPECT_EQ(members.all(), (std::vector<WorkerId>{{1}, {2}}));
  EXPECT_EQ(members.node({2}), "a");
  EXPECT_EQ(members.size(), 2U);
}

TEST(Membership, Silent_members_are_found_in_order_of_id) {
  Membership members(from_seconds(5));
  for (int i = 0; i < 3; ++i) members.join(at_seconds(0), "n");
  EXPECT_TRUE(members.record_contact(at_seconds(1), {1}));
  EXPECT_TRUE(members.silent(at_seconds(5)).empty()) << "exactly at the deadline is in time";
  EXPECT_EQ(members.silent(at_seconds(5.5)), (std::vector<WorkerId>{{0}, {2}}));
  EXPECT_EQ(members.silent(at_seconds(6.5)), (std::vector<WorkerId>{{0}, {1}, {2}}));
}

TEST(Membership, Contact_of_a_former_member_is_ignored) {
  Membership members(from_seconds(5));
  EXPECT_FALSE(members.record_contact({}, {0}));
  const WorkerId worker = members.join({}, "a");
  members.leave(worker);
  EXPECT_FALSE(members.record_contact({}, worker)) << "an old id is fenced for ever";
  EXPECT_TRUE(members.silent(at_seconds(100)).empty());
}

}  // namespace
}  // namespace motley::protocol
