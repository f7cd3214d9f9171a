// One server's parameters: the update rule, and the same bits for any number of servers.
#include <gtest/gtest.h>

#include "base/check.h"
#include "base/rng.h"
#include "store/shard_store.h"

namespace motley::store {
namespace {

using Floats = std::vector<float>;

Floats normals(Rng& rng, std::size_t n) {
  Floats out(n);
  for (float& x : out) x = static_cast<float>(rng.normal());
  return out;
}

// Two parameter tensors, one of them longer than a block of the reduction, and a statistic.
const std::vector<TensorPlace> tensors{
    {0, 9001, TensorKind::parameter}, {9001, 500, TensorKind::parameter}, {9501, 321, TensorKind::statistic}};
constexpr std::size_t parameters = 9501;
constexpr std::size_t values = 9822;

/// All servers of one layout.
struct Servers {
  explicit Servers(std::uint32_t count, const OptimizerSpec& spec, const Floats& initial) {
    const Layout layout = cut(tensors, 700, count);
    for (std::uint32_t i = 0; i < count; ++i) shards.emplace_back(layout, ServerId{i}, spec, initial);
  }
  void apply(const Update& update, std::span<const WeightedPart> parts) {
    for (ShardStore& shard : shards) shard.apply(update, parts);
  }
  [[nodiscard]] Floats snapshot(double rho) const {
    Floats out(values);
    for (const ShardStore& shard : shards) shard.snapshot(rho, out);
    return out;
  }
  [[nodiscard]] Floats plain() const {
    Floats out(values);
    for (const ShardStore& shard : shards) shard.values(out);
    return out;
  }
  std::vector<ShardStore> shards;
};

TEST(ShardStore, StartsAtVersionZeroWithTheInitialValues) {
  Rng rng(1, "initial");
  const Floats initial = normals(rng, values);
  const Servers servers(2, {}, initial);
  EXPECT_EQ(servers.plain(), initial);
  EXPECT_EQ(servers.snapshot(0.9), initial);
  EXPECT_EQ(servers.shards[0].version(), Version{0});
}

TEST(ShardStore, AGradientUpdateAppliesTheRuleToTheWeightedSum) {
  Rng rng(2, "gradient");
  const Floats initial = normals(rng, values), a = normals(rng, values), b = normals(rng, values), c = normals(rng, values);
  Servers servers(1, {}, initial);
  servers.apply({UpdateKind::gradient, 0.1, 0.9}, std::vector<WeightedPart>{{a, 0.2}, {b, 0.5}, {c, 0.3}});
  const Floats after = servers.plain(), ahead = servers.snapshot(0.9);
  for (std::size_t i = 0; i < values; ++i) {
    const float sum = (0.2F * a[i] + 0.5F * b[i]) + 0.3F * c[i];  // and after the first update v = g
    if (i < parameters) {
      ASSERT_EQ(after[i], initial[i] - 0.1F * sum);
      ASSERT_EQ(ahead[i], after[i] - static_cast<float>(0.9 * 0.1) * sum);
    } else {
      ASSERT_EQ(after[i], initial[i] + sum) << "a statistic moves by the mean of the changes";
      ASSERT_EQ(ahead[i], after[i]) << "a statistic does not look ahead";
    }
  }
  EXPECT_EQ(servers.shards[0].version(), Version{1});
}

TEST(ShardStore, ADeltaIsAddedAndLeavesTheMomentum) {
  Rng rng(3, "delta");
  const Floats initial = normals(rng, values), a = normals(rng, values);
  Servers servers(1, {}, initial);
  servers.apply({.kind = UpdateKind::delta}, std::vector<WeightedPart>{{a, 0.5}});
  Floats expected(values);
  for (std::size_t i = 0; i < values; ++i) expected[i] = initial[i] + 0.5F * a[i];
  EXPECT_EQ(servers.plain(), expected);
  EXPECT_EQ(servers.snapshot(0.9), expected);
}

TEST(ShardStore, WritesOnlyItsOwnSlices) {
  const Layout layout = cut(tensors, 700, 3);
  const ShardStore shard(layout, ServerId{1}, {}, Floats(values, 1.0F));
  Floats out(values, -7.0F);
  shard.values(out);
  for (const Slice& slice : layout.slices)
    for (std::size_t i = slice.offset; i < slice.offset + slice.count; ++i)
      ASSERT_EQ(out[i], slice.server == ServerId{1} ? 1.0F : -7.0F) << "at " << i;
}

TEST(ShardStore, AServerWithoutSlicesOnlyCountsVersions) {
  const std::vector<TensorPlace> tiny{{0, 3, TensorKind::parameter}};
  ShardStore idle(cut(tiny, 100, 2), ServerId{1}, {}, Floats(3, 1.0F));
  idle.apply({UpdateKind::gradient, 0.1, 0.9}, std::vector<WeightedPart>{{Floats(3, 1.0F), 1}});
  EXPECT_EQ(idle.version(), Version{1});
}

TEST(ShardStore, RejectsPartsThatDoNotCoverTheModel) {
  Servers servers(1, {}, Floats(values));
  const Floats part(values - 1);
  EXPECT_THROW(servers.apply({}, std::vector<WeightedPart>{{part, 1}}), Bug);
  EXPECT_THROW(servers.apply({}, {}), Bug);
}

class ShardStoreLaw : public testing::TestWithParam<OptimizerKind> {};

TEST_P(ShardStoreLaw, AnyNumberOfServersGivesTheSameBits) {
  const OptimizerSpec spec{.kind = GetParam(), .weight_decay = 1e-3};
  Rng rng(4, "servers");
  const Floats initial = normals(rng, values);
  std::vector<Servers> clusters;
  for (std::uint32_t count : {1, 2, 3}) clusters.emplace_back(count, spec, initial);

  for (int t = 0; t < 20; ++t) {
    std::vector<Floats> contributions;
    std::vector<WeightedPart> parts;
    for (std::uint64_t i = 0, n = 1 + rng.below(5); i < n; ++i) contributions.push_back(normals(rng, values));
    for (const Floats& flat : contributions) parts.push_back({flat, rng.uniform()});
    const Update update{rng.below(4) == 0 ? UpdateKind::delta : UpdateKind::gradient, 0.1 * rng.uniform(), rng.uniform()};
    for (Servers& servers : clusters) servers.apply(update, parts);

    for (const Servers& servers : clusters) {
      ASSERT_EQ(servers.plain(), clusters[0].plain()) << servers.shards.size() << " servers, update " << t;
      ASSERT_EQ(servers.snapshot(1.71), clusters[0].snapshot(1.71)) << servers.shards.size() << " servers, update " << t;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, ShardStoreLaw, testing::Values(OptimizerKind::sgd, OptimizerKind::adamw));

}  // namespace
}  // namespace motley::store
