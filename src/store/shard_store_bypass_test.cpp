// Updates that bypass the momentum, delay compensation, and alignment with the momentum, against a scalar reference over the whole model.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

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
    {0, 5001, TensorKind::parameter}, {5001, 300, TensorKind::parameter}, {5301, 77, TensorKind::statistic}};
constexpr std::size_t values = 5378;
bool is_parameter(std::size_t i) { return i < 5301; }

/// All servers of one layout.
struct Servers {
  Servers(std::uint32_t count, const OptimizerSpec& spec, const Floats& initial) {
    const Layout layout = cut(tensors, 700, count);
    for (std::uint32_t i = 0; i < count; ++i) shards.emplace_back(layout, ServerId{i}, spec, initial);
  }
  void apply(const Update& update, std::span<const WeightedPart> parts) {
    for (ShardStore& shard : shards) shard.apply(update, parts);
  }
  void keep(const PullId& sent, double rho) {
    for (ShardStore& shard : shards) shard.keep(sent, rho);
  }
  void forget(WorkerId worker) {
    for (ShardStore& shard : shards) shard.forget(worker);
  }
  [[nodiscard]] double alignment(const Floats& flat) const {
    double sum = 0;
    for (const ShardStore& shard : shards) sum += shard.alignment(flat);
    return sum;
  }
  [[nodiscard]] Floats plain() const {
    Floats out(values);
    for (const ShardStore& shard : shards) shard.values(out);
    return out;
  }
  [[nodiscard]] Floats snapshot(double rho) const {
    Floats out(values);
    for (const ShardStore& shard : shards) shard.snapshot(rho, out);
    return out;
  }
  [[nodiscard]] Moments moments() const {
    Moments all;
    for (const ShardStore& shard : shards) shard.moments(all);
    return all;
  }
  std::vector<ShardStore> shards;
};

/// g + clip(lambda*g*g*(w - base), |g|), in double.
double compensated(double g, double w, double base, double lambda) {
  return g + std::clamp(lambda * g * g * (w - base), -std::abs(g), std::abs(g));
}

/// One parameter after an update that bypasses the momentum, in double.
double apart(const OptimizerSpec& spec, const Update& update, double w, double g, double second, std::uint64_t updates) {
  if (spec.kind == OptimizerKind::sgd) return w - update.rate / (1 - update.momentum) * (g + spec.weight_decay * update.share * w);
  const double unbiased = second / (1 - std::pow(spec.beta2, static_cast<double>(updates)));
  return w - update.rate * (g / (std::sqrt(unbiased) + spec.epsilon) + spec.weight_decay * update.share * w);
}

class BypassMomentum : public testing::TestWithParam<OptimizerKind> {
 protected:
  OptimizerSpec spec{.kind = GetParam(), .weight_decay = 1e-2};
  Rng rng{1, "apart"};
  Servers servers{2, spec, normals(rng, values)};
  static constexpr Update ordinary{UpdateKind::gradient, 0.05, 0.9, 1};

  void some_ordinary_updates() {
    for (int i = 0; i < 3; ++i) servers.apply(ordinary, std::vector<WeightedPart>{{normals(rng, values), 1}});
  }
};

TEST_P(BypassMomentum, LeavesTheMomentumAndMatchesTheReference) {
  some_ordinary_updates();
  const Floats before = servers.plain();
  const Moments moments = servers.moments();
  const Floats a = normals(rng, values), b = normals(rng, values);
  const Update update{UpdateKind::bypass_momentum, 0.05, 0.9, 0.25};
  servers.apply(update, std::vector<WeightedPart>{{a, 0.3}, {b, 0.2}});
  const Floats after = servers.plain();
  for (std::size_t i = 0; i < values; ++i) {
    const double sum = 0.3 * a[i] + 0.2 * b[i];
    if (!is_parameter(i)) {
      ASSERT_NEAR(after[i], before[i] + sum, 1e-5) << "a statistic moves as ever";
      continue;
    }
    const double second = moments.second.empty() ? 0 : moments.second[i];
    ASSERT_NEAR(after[i], apart(spec, update, before[i], sum, second, moments.updates), 2e-5) << "value " << i;
  }
  EXPECT_EQ(servers.moments().first, moments.first);
  EXPECT_EQ(servers.moments().second, moments.second);
  EXPECT_EQ(servers.moments().updates, moments.updates);
  EXPECT_EQ(servers.shards[0].version(), Version{4});
}

TEST_P(BypassMomentum, IsAnOrdinaryUpdateWithoutMomentum) {
  const Floats part = normals(rng, values);
  Servers reference = servers;
  servers.apply({UpdateKind::bypass_momentum, 0.05, 0.9, 1}, std::vector<WeightedPart>{{part, 0.5}});
  reference.apply(ordinary, std::vector<WeightedPart>{{part, 0.5}});
  EXPECT_EQ(servers.plain(), reference.plain());
  EXPECT_EQ(servers.moments().first, reference.moments().first);
}

TEST_P(BypassMomentum, LateGradientsAreCompensatedForUpdatesSinceTheirBase) {
  some_ordinary_updates();
  constexpr double rho = 1.71;
  constexpr double lambda = 2;
  const PullId sent{{3}, {8}};
  servers.keep(sent, rho);
  const Floats base = servers.snapshot(rho);
  some_ordinary_updates();
  const Floats before = servers.plain();
  const Moments moments = servers.moments();
  const Floats late = normals(rng, values), unknown = normals(rng, values);
  const Update update{UpdateKind::bypass_momentum, 0.05, 0.9, 0.5, lambda};
  servers.apply(update, std::vector<WeightedPart>{{late, 0.3, sent}, {unknown, 0.2, {{4}, {1}}}});
  const Floats after = servers.plain();
  std::size_t clipped = 0;
  for (std::size_t i = 0; i < values; ++i) {
    if (!is_parameter(i)) {
      ASSERT_NEAR(after[i], before[i] + 0.3 * late[i] + 0.2 * unknown[i], 1e-5) << "a statistic is not compensated";
      continue;
    }
    const double corrected = compensated(late[i], before[i], base[i], lambda);
    clipped += std::abs(std::abs(corrected - late[i]) - std::abs(late[i])) < 1e-9 ? 1U : 0U;
    const double sum = 0.3 * corrected + 0.2 * unknown[i];  // without a base there is no compensation
    const double second = moments.second.empty() ? 0 : moments.second[i];
    ASSERT_NEAR(after[i], apart(spec, update, before[i], sum, second, moments.updates), 5e-5) << "value " << i;
  }
  EXPECT_LT(clipped, values) << "some are clipped, most are not";
}

TEST_P(BypassMomentum, NoCompensationWithoutBaseOrLambda) {
  some_ordinary_updates();
  servers.keep({{3}, {8}}, 0.9);
  some_ordinary_updates();
  const Floats late = normals(rng, values);
  const Update update{UpdateKind::bypass_momentum, 0.05, 0.9, 0.5, 2};
  Update plain = update;
  plain.compensation = 0;
  Servers uncompensated = servers, forgotten = servers, other_step = servers;
  forgotten.forget({3});
  uncompensated.apply(plain, std::vector<WeightedPart>{{late, 0.3, {{3}, {8}}}});
  forgotten.apply(update, std::vector<WeightedPart>{{late, 0.3, {{3}, {8}}}});
  other_step.apply(update, std::vector<WeightedPart>{{late, 0.3, {{3}, {9}}}});
  servers.apply(update, std::vector<WeightedPart>{{late, 0.3, {{3}, {8}}}});
  EXPECT_EQ(forgotten.plain(), uncompensated.plain());
  EXPECT_EQ(other_step.plain(), uncompensated.plain());
  EXPECT_NE(servers.plain(), uncompensated.plain());
}

TEST_P(BypassMomentum, AlignmentIsTheInnerProductWithTheFirstMoment) {
  EXPECT_EQ(servers.alignment(normals(rng, values)), 0) << "there is none yet";
  some_ordinary_updates();
  const Floats part = normals(rng, values);
  const Moments moments = servers.moments();
  double product = 0;
  for (std::size_t i = 0; i < values; ++i)
    if (is_parameter(i)) product += static_cast<double>(part[i]) * moments.first[i];
  EXPECT_NEAR(servers.alignment(part), product, 1e-9 * values);
  EXPECT_GT(servers.alignment(moments.first), 0);
  EXPECT_THROW((void)servers.shards[0].alignment(Floats(values - 1)), Bug);
}

TEST_P(BypassMomentum, StashesOneCopyPerVersionAndFreesUnusedOnes) {
  EXPECT_EQ(servers.shards[0].bytes_kept(), 0U);
  servers.keep({{0}, {1}}, 0.9);
  const std::size_t one = servers.shards[0].bytes_kept();
  EXPECT_GT(one, 0U);
  servers.keep({{1}, {1}}, 0.9);
  EXPECT_EQ(servers.shards[0].bytes_kept(), one);
  servers.apply(ordinary, std::vector<WeightedPart>{{normals(rng, values), 1}});
  servers.keep({{1}, {2}}, 0.9);
  EXPECT_EQ(servers.shards[0].bytes_kept(), 2 * one);
  servers.forget({0});
  servers.forget({1});
  EXPECT_EQ(servers.shards[0].bytes_kept(), 0U);
}

TEST_P(BypassMomentum, AnyNumberOfServersGivesTheSameBits) {
  const Floats initial = normals(rng, values);
  std::vector<Servers> clusters;
  for (const std::uint32_t count : {1U, 2U, 3U}) clusters.emplace_back(count, spec, initial);
  constexpr std::uint32_t workers = 4;
  std::map<WorkerId, Step> steps;
  for (int t = 0; t < 40; ++t) {
    const WorkerId worker{static_cast<std::uint32_t>(rng.below(workers))};
    const Floats part = normals(rng, values), other = normals(rng, values);
    const auto kind = rng.below(2) == 0 ? UpdateKind::bypass_momentum : UpdateKind::gradient;
    const Update update{kind, 0.02 * rng.uniform(), 0.9, rng.uniform(), static_cast<double>(rng.below(3))};
    const std::vector<WeightedPart> parts{{part, rng.uniform(), {worker, steps[worker]}}, {other, rng.uniform(), {{9}, {9}}}};
    const double rho = rng.uniform();
    steps[worker] = steps[worker].next();
    for (Servers& servers_now : clusters) {
      servers_now.apply(update, parts);
      servers_now.keep({worker, steps[worker]}, rho);
      ASSERT_EQ(servers_now.plain(), clusters[0].plain()) << servers_now.shards.size() << " servers, update " << t;
      ASSERT_NEAR(servers_now.alignment(part), clusters[0].alignment(part), 1e-6);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, BypassMomentum, testing::Values(OptimizerKind::sgd, OptimizerKind::adamw));

// The optimizer ----------------------------------------------------------------------------------------------------------------------

TEST(OptimizerBypass, RequiresAnEarlierUpdate) {
  const Optimizer optimizer({}, 2);
  Floats w(2), g(2);
  EXPECT_THROW(optimizer.update_piece_bypassing_momentum(0, w, g, 0.1, 0.9, 1), Bug);
}

TEST(OptimizerBypass, PiecesGiveTheSameBitsAsTheWhole) {
  for (const OptimizerKind kind : {OptimizerKind::sgd, OptimizerKind::adamw}) {
    Rng rng(2, "pieces apart");
    Optimizer optimizer({.kind = kind, .weight_decay = 0.1}, 1000);
    Floats whole = normals(rng, 1000);
    optimizer.update(whole, normals(rng, 1000), 0.1, 0.9);
    Floats pieces = whole;
    const Floats gradient = normals(rng, 1000);
    optimizer.update_piece_bypassing_momentum(0, whole, gradient, 0.1, 0.9, 0.5);
    for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{300, 700}, {0, 300}})
      optimizer.update_piece_bypassing_momentum(first, std::span(pieces).subspan(first, count), std::span(gradient).subspan(first, count),
                                                0.1, 0.9, 0.5);
    EXPECT_EQ(whole, pieces);
    EXPECT_THROW(optimizer.update_piece_bypassing_momentum(1, whole, gradient, 0.1, 0.9, 0.5), Bug);
  }
}

TEST(OptimizerBypass, SgdMovesAsFarAsTheMomentumWouldOverTime) {
  Optimizer optimizer({}, 1);
  Floats by_momentum{1}, single_batch{1};
  const Floats none{0}, g{0.5F};
  optimizer.update(by_momentum, none, 0.1, 0.9);
  Optimizer other = optimizer;
  optimizer.update_piece_bypassing_momentum(0, single_batch, g, 0.1, 0.9, 1);
  other.update(by_momentum, g, 0.1, 0.9);
  for (int i = 0; i < 300; ++i) other.update(by_momentum, none, 0.1, 0.9);
  EXPECT_NEAR(single_batch[0], by_momentum[0], 1e-5);
}

}  // namespace
}  // namespace motley::store
