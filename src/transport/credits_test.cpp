// Credits: the sender stays within the window, the receiver notices one that does not, and nobody waits for ever.
#include "transport/credits.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/rng.h"

namespace motley::transport {
namespace {

SendCredits opened(std::uint64_t window) {
  SendCredits credits;
  EXPECT_TRUE(credits.grant(window));
  return credits;
}

TEST(Credits, NothingGoesBeforeTheFirstGrant) { EXPECT_FALSE(SendCredits{}.covers(1)); }

TEST(Credits, AnEmptyFirstGrantIsNoWindow) { EXPECT_FALSE(SendCredits{}.grant(0)); }

TEST(Credits, TheWindowFillsAndEmpties) {
  SendCredits credits = opened(100);
  credits.spend(60);
  EXPECT_TRUE(credits.covers(40));
  EXPECT_FALSE(credits.covers(41));
  EXPECT_THROW(credits.spend(41), Bug);
  EXPECT_TRUE(credits.grant(20));
  EXPECT_TRUE(credits.covers(60));
}

TEST(Credits, APayloadBeyondTheWindowGoesAlone) {
  SendCredits credits = opened(100);
  credits.spend(1);
  EXPECT_FALSE(credits.covers(1'000));
  EXPECT_TRUE(credits.grant(1));
  credits.spend(1'000);
  EXPECT_FALSE(credits.covers(0));
  EXPECT_TRUE(credits.grant(1'000));
  EXPECT_TRUE(credits.covers(1'000));
}

TEST(Credits, MoreReturnedThanSentIsABrokenPeer) {
  SendCredits credits = opened(100);
  credits.spend(10);
  EXPECT_FALSE(credits.grant(11));
}

TEST(Credits, TheReceiverNoticesAnOverrun) {
  ReceiveCredits credits(100);
  EXPECT_TRUE(credits.announce(100));
  EXPECT_FALSE(credits.announce(1));
}

TEST(Credits, WhatIsHeldIsGrantedOnlyAfterwards) {
  ReceiveCredits credits(100);
  EXPECT_TRUE(credits.announce(70));
  credits.hold(true);
  credits.arrived(70);
  EXPECT_EQ(credits.collect(), 0U);
  EXPECT_FALSE(credits.announce(31));
  credits.hold(false);
  EXPECT_EQ(credits.collect(), 70U);
  EXPECT_TRUE(credits.announce(100));
}

TEST(Credits, AnyTrafficWithinTheRuleFlows) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "credits");
    SendCredits sender = opened(1'000);
    ReceiveCredits receiver(1'000);
    for (int i = 0; i < 200; ++i) {
      const std::size_t bytes = rng.below(1'500);
      if (!sender.covers(bytes)) {
        ASSERT_TRUE(sender.grant(receiver.collect()));
      }
      ASSERT_TRUE(sender.covers(bytes)) << "all is granted back, yet " << bytes << " bytes wait";
      sender.spend(bytes);
      ASSERT_TRUE(receiver.announce(bytes));
      receiver.arrived(bytes);
    }
  }
}

}  // namespace
}  // namespace motley::transport
