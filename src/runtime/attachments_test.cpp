#include "runtime/attachments.h"

#include <gtest/gtest.h>

#include "runtime/silent_peer_owner_for_tests.h"

namespace motley::runtime {
namespace {

using Answer = Attachments::Answer;

class AttachmentsTest : public testing::Test {
 protected:
  boost::asio::io_context io;
  FakePeer peers[4]{FakePeer{io}, FakePeer{io}, FakePeer{io}, FakePeer{io}};
  PeerConnection& member = *peers[0].connection;
  PeerConnection& thief = *peers[1].connection;
  PeerConnection& other = *peers[2].connection;
  PeerConnection& gone = *peers[3].connection;
  Attachments all;
};

TEST_F(AttachmentsTest, A_member_is_attached_by_its_key) {
  EXPECT_TRUE(all.admitted({{3}, 77}).empty());
  EXPECT_EQ(all.claimed(thief, {{3}, 76}), Answer::refuse);
  EXPECT_EQ(all.claimed(member, {{3}, 77}), Answer::attach);
  EXPECT_EQ(all.claimed(thief, {{3}, 0}), Answer::refuse);
}

TEST_F(AttachmentsTest, A_claim_waits_until_the_chief_names_the_member) {
  EXPECT_EQ(all.claimed(thief, {{3}, 1}), Answer::wait);
  EXPECT_EQ(all.claimed(member, {{3}, 77}), Answer::wait);
  EXPECT_EQ(all.claimed(other, {{4}, 77}), Answer::wait);
  EXPECT_EQ(all.claimed(gone, {{3}, 77}), Answer::wait);
  all.closed(gone);
  const auto answers = all.admitted({{3}, 77});
  ASSERT_EQ(answers.size(), 2U);
  for (const auto& [from, answer] : answers) EXPECT_EQ(answer, from == &member ? Answer::attach : Answer::refuse);
  EXPECT_TRUE(all.admitted({{3}, 1}).empty());
  EXPECT_EQ(all.claimed(thief, {{3}, 1}), Answer::refuse) << "a key is set once";
}

TEST_F(AttachmentsTest, A_second_connection_of_a_member_is_refused) {
  all.admitted({{3}, 77});
  EXPECT_EQ(all.claimed(member, {{3}, 77}), Answer::attach);
  EXPECT_EQ(all.claimed(other, {{3}, 77}), Answer::refuse);
  all.closed(member);
  EXPECT_EQ(all.claimed(other, {{3}, 77}), Answer::attach);
}

TEST_F(AttachmentsTest, A_forgotten_member_is_unknown) {
  all.admitted({{3}, 77});
  all.forget({3});
  EXPECT_FALSE(all.knows({3}));
  EXPECT_EQ(all.claimed(member, {{3}, 77}), Answer::wait);
}

}  // namespace
}  // namespace motley::runtime
