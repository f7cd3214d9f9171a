// The weight stash: which parameters are kept for which worker, which are shared, and when copies are freed.
#include "store/weight_stash.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace motley::store {
namespace {

using Values = Floats;
constexpr WorkerId ann{0};
constexpr WorkerId bob{1};
constexpr WorkerId cid{2};

Values found(const WeightStash& stash, const PullId& sent) {
  const auto values = stash.find(sent);
  return {values.begin(), values.end()};
}

TEST(WeightStash, FindsTheParametersOfAWorkersStep) {
  WeightStash stash;
  stash.keep({ann, {1}}, {7}, 0.9, {1, 2});
  EXPECT_EQ(found(stash, {ann, {1}}), (Values{1, 2}));
  EXPECT_TRUE(stash.find({ann, {2}}).empty()) << "another step";
  EXPECT_TRUE(stash.find({bob, {1}}).empty()) << "another worker";
  EXPECT_EQ(stash.bytes(), 2 * sizeof(float));
}

TEST(WeightStash, OneCopyServesSeveralWorkers) {
  WeightStash stash;
  EXPECT_FALSE(stash.reuse({ann, {1}}, {7}, 0.9));
  stash.keep({ann, {1}}, {7}, 0.9, {1, 2});
  EXPECT_TRUE(stash.reuse({bob, {4}}, {7}, 0.9));
  EXPECT_EQ(found(stash, {bob, {4}}), (Values{1, 2}));
  EXPECT_EQ(stash.bytes(), 2 * sizeof(float));
  EXPECT_FALSE(stash.reuse({cid, {1}}, {8}, 0.9)) << "another version";
  EXPECT_FALSE(stash.reuse({cid, {1}}, {7}, 0.5)) << "looking ahead by another amount";
}

TEST(WeightStash, AWorkersBaseIsTheLastItWasSent) {
  WeightStash stash;
  stash.keep({ann, {1}}, {1}, 0, {1});
  stash.keep({ann, {2}}, {2}, 0, {2});
  EXPECT_TRUE(stash.find({ann, {1}}).empty());
  EXPECT_EQ(found(stash, {ann, {2}}), Values{2});
  EXPECT_EQ(stash.bytes(), sizeof(float)) << "what nobody computes on any more is freed";
}

TEST(WeightStash, ASharedCopyIsFreedWithItsLastWorker) {
  WeightStash stash;
  stash.keep({ann, {1}}, {1}, 0, {1});
  ASSERT_TRUE(stash.reuse({bob, {1}}, {1}, 0));
  stash.keep({ann, {2}}, {2}, 0, {2});
  EXPECT_EQ(found(stash, {bob, {1}}), Values{1});
  EXPECT_EQ(stash.bytes(), 2 * sizeof(float));
  ASSERT_TRUE(stash.reuse({bob, {2}}, {2}, 0));
  EXPECT_EQ(stash.bytes(), sizeof(float));
  stash.forget(ann);
  EXPECT_EQ(found(stash, {bob, {2}}), Values{2});
  stash.forget(bob);
  EXPECT_EQ(stash.bytes(), 0U);
  stash.forget(cid);  // a worker that was sent nothing
}

TEST(WeightStash, FreesTheOldestVersionAboveTheLimit) {
  WeightStash stash(3);
  for (std::uint32_t w = 0; w < 5; ++w) stash.keep({{w}, {1}}, {w}, 0, {static_cast<float>(w)});
  EXPECT_TRUE(stash.find({{0}, {1}}).empty());
  EXPECT_TRUE(stash.find({{1}, {1}}).empty());
  for (std::uint32_t w = 2; w < 5; ++w) EXPECT_EQ(found(stash, {{w}, {1}}), Values{static_cast<float>(w)});
  EXPECT_EQ(stash.bytes(), 3 * sizeof(float));
  EXPECT_FALSE(stash.reuse({{0}, {2}}, {0}, 0));
}

/// Reference: a list of everything that was sent.
TEST(WeightStash, MatchesAListOfEverythingSent) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "bases");
    WeightStash stash;
    std::map<WorkerId, std::pair<Step, Values>> last;  // by worker
    Version version;
    for (std::uint64_t i = 0; i < 300; ++i) {
      const WorkerId worker{static_cast<std::uint32_t>(rng.below(6))};
      if (rng.below(3) == 0) version = version.next();
      if (rng.below(20) == 0) {
        stash.forget(worker);
        last.erase(worker);
        continue;
      }
      const double rho = 0.5 * static_cast<double>(rng.below(2));
      const Values values{static_cast<float>(version.value), static_cast<float>(rho)};
      const PullId sent{worker, {i}};
      if (!stash.reuse(sent, version, rho)) stash.keep(sent, version, rho, values);
      last[worker] = {sent.step, values};
      for (const auto& [who, what] : last) ASSERT_EQ(found(stash, {who, what.first}), what.second);
      ASSERT_LE(stash.bytes(), last.size() * 2 * sizeof(float));
    }
  }
}

}  // namespace
}  // namespace motley::store
