// Bases: what is kept for whom, what is shared, what is freed and when the oldest has to go.
#include "store/bases.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace motley::store {
namespace {

using Values = Floats;
constexpr WorkerId ann{0};
constexpr WorkerId bob{1};
constexpr WorkerId cid{2};

Values found(const Bases& bases, const Sent& sent) {
  const auto values = bases.find(sent);
  return {values.begin(), values.end()};
}

TEST(Bases, KeepWhatAWorkerWasSentForTheStepItWasSentFor) {
  Bases bases;
  bases.keep({ann, {1}}, {7}, 0.9, {1, 2});
  EXPECT_EQ(found(bases, {ann, {1}}), (Values{1, 2}));
  EXPECT_TRUE(bases.find({ann, {2}}).empty()) << "another step";
  EXPECT_TRUE(bases.find({bob, {1}}).empty()) << "another worker";
  EXPECT_EQ(bases.bytes(), 2 * sizeof(float));
}

TEST(Bases, WhatIsSentToSeveralIsKeptOnce) {
  Bases bases;
  EXPECT_FALSE(bases.keep_again({ann, {1}}, {7}, 0.9));
  bases.keep({ann, {1}}, {7}, 0.9, {1, 2});
  EXPECT_TRUE(bases.keep_again({bob, {4}}, {7}, 0.9));
  EXPECT_EQ(found(bases, {bob, {4}}), (Values{1, 2}));
  EXPECT_EQ(bases.bytes(), 2 * sizeof(float));
  EXPECT_FALSE(bases.keep_again({cid, {1}}, {8}, 0.9)) << "another version";
  EXPECT_FALSE(bases.keep_again({cid, {1}}, {7}, 0.5)) << "looking ahead by another amount";
}

TEST(Bases, AWorkerHasOneBaseTheLastItWasSent) {
  Bases bases;
  bases.keep({ann, {1}}, {1}, 0, {1});
  bases.keep({ann, {2}}, {2}, 0, {2});
  EXPECT_TRUE(bases.find({ann, {1}}).empty());
  EXPECT_EQ(found(bases, {ann, {2}}), Values{2});
  EXPECT_EQ(bases.bytes(), sizeof(float)) << "what nobody computes on any more is freed";
}

TEST(Bases, WhatIsSharedLivesUntilTheLastWhoComputesOnIt) {
  Bases bases;
  bases.keep({ann, {1}}, {1}, 0, {1});
  ASSERT_TRUE(bases.keep_again({bob, {1}}, {1}, 0));
  bases.keep({ann, {2}}, {2}, 0, {2});
  EXPECT_EQ(found(bases, {bob, {1}}), Values{1});
  EXPECT_EQ(bases.bytes(), 2 * sizeof(float));
  ASSERT_TRUE(bases.keep_again({bob, {2}}, {2}, 0));
  EXPECT_EQ(bases.bytes(), sizeof(float));
  bases.forget(ann);
  EXPECT_EQ(found(bases, {bob, {2}}), Values{2});
  bases.forget(bob);
  EXPECT_EQ(bases.bytes(), 0U);
  bases.forget(cid);  // who was never sent anything
}

TEST(Bases, WhenThereAreTooManyVersionsTheOldestGoes) {
  Bases bases(3);
  for (std::uint32_t w = 0; w < 5; ++w) bases.keep({{w}, {1}}, {w}, 0, {static_cast<float>(w)});
  EXPECT_TRUE(bases.find({{0}, {1}}).empty());
  EXPECT_TRUE(bases.find({{1}, {1}}).empty());
  for (std::uint32_t w = 2; w < 5; ++w) EXPECT_EQ(found(bases, {{w}, {1}}), Values{static_cast<float>(w)});
  EXPECT_EQ(bases.bytes(), 3 * sizeof(float));
  EXPECT_FALSE(bases.keep_again({{0}, {2}}, {0}, 0));
}

/// The slow clear twin: a list of everything that was ever sent.
TEST(Bases, AnswerAsAListOfAllThatWasSentWould) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "bases");
    Bases bases;
    std::map<WorkerId, std::pair<Step, Values>> last;  // by worker
    Version version;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const WorkerId worker{static_cast<std::uint32_t>(rng.below(6))};
      if (rng.below(3) == 0) version = version.next();
      if (rng.below(20) == 0) {
        bases.forget(worker);
        last.erase(worker);
        continue;
      }
      const double rho = 0.5 * static_cast<double>(rng.below(2));
      const Values values{static_cast<float>(version.value), static_cast<float>(rho)};
      const Sent sent{worker, {i}};
      if (!bases.keep_again(sent, version, rho)) bases.keep(sent, version, rho, values);
      last[worker] = {sent.step, values};
      for (const auto& [who, what] : last) ASSERT_EQ(found(bases, {who, what.first}), what.second);
      ASSERT_LE(bases.bytes(), last.size() * 2 * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace motley::store
