// Every number of threads and every instruction set gives the same bits.
#include <gtest/gtest.h>

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

// Several pieces for a team on each of two servers. Slices of odd lengths, so that their borders lie anywhere in a piece, and the last
// piece holds parameters and statistics.
const std::vector<TensorPlace> tensors{{0, 5 * piece_values + 777, TensorKind::parameter},
                                       {5 * piece_values + 777, 501, TensorKind::parameter},
                                       {5 * piece_values + 1278, 999, TensorKind::statistic}};
constexpr std::size_t parameters = 5 * piece_values + 1278;
constexpr std::size_t values = 5 * piece_values + 2277;
const Layout layout = cut(tensors, 20'011, 2);

/// Everything that a server outputs.
struct Answers {
  Floats plain, ahead;
  Moments moments;
  double alignment{};
};

/// Two servers of one layout.
struct Servers {
  Servers(const OptimizerSpec& spec, const Floats& initial, const ExecutionContext& context) {
    for (std::uint32_t i = 0; i < 2; ++i) shards.emplace_back(layout, ServerId{i}, spec, initial, context);
  }
  [[nodiscard]] Answers answers(const Floats& contribution) const {
    Answers all{Floats(values), Floats(values), {}, 0};
    for (const ShardStore& shard : shards) {
      shard.values(all.plain);
      shard.snapshot(0.9, all.ahead);
      shard.moments(all.moments);
      all.alignment += shard.alignment(contribution);
    }
    return all;
  }
  std::vector<ShardStore> shards;
};

class Threads : public testing::TestWithParam<OptimizerKind> {};

TEST_P(Threads, AnyNumberOnAnyTargetGivesTheSameBits) {
  const OptimizerSpec spec{.kind = GetParam(), .weight_decay = 1e-3};
  Rng rng(1, "threads");
  const Floats initial = normals(rng, values);
  Servers alone(spec, initial, {std::make_shared<ThreadPool>(1), Target::plain});
  std::vector<std::pair<ExecutionContext, Servers>> others;
  for (const Target target : {Target::plain, Target::avx2, Target::avx512})
    for (std::size_t threads = 1; threads <= 4; ++threads) {
      if (target > widest_target()) continue;
      const ExecutionContext context{std::make_shared<ThreadPool>(threads), target};
      others.emplace_back(context, Servers(spec, initial, context));
    }
  const auto everyone = [&](const auto& call) {
    for (ShardStore& shard : alone.shards) call(shard);
    for (auto& [context, servers] : others)
      for (ShardStore& shard : servers.shards) call(shard);
  };

  constexpr UpdateKind kinds[] = {UpdateKind::gradient, UpdateKind::delta, UpdateKind::bypass_momentum, UpdateKind::bypass_momentum,
                                  UpdateKind::gradient};
  for (std::uint32_t t = 0; t < std::size(kinds); ++t) {
    const PullId sent{WorkerId{t % 2}, Step{t}};
    everyone([&](ShardStore& shard) { shard.keep(sent, 0.9); });
    std::vector<Floats> contributions;
    std::vector<WeightedPart> parts;
    for (std::uint32_t i = 0; i <= t % 3; ++i) contributions.push_back(normals(rng, values));
    for (const Floats& flat : contributions) parts.push_back({flat, rng.uniform(), sent});
    const Update update{kinds[t], 0.1 * rng.uniform(), 0.9, 0.5, t == 3 ? 0.5 : 0};
    everyone([&](ShardStore& shard) { shard.apply(update, parts); });

    const Answers expected = alone.answers(contributions[0]);
    for (const auto& [context, servers] : others) {
      SCOPED_TRACE(testing::Message() << context.pool->threads() << " threads, target " << static_cast<int>(context.target) << ", update "
                                      << t);
      const Answers found = servers.answers(contributions[0]);
      ASSERT_EQ(found.plain, expected.plain);
      ASSERT_EQ(found.ahead, expected.ahead);
      ASSERT_EQ(found.moments.first, expected.moments.first);
      ASSERT_EQ(found.moments.second, expected.moments.second);
      ASSERT_EQ(found.alignment, expected.alignment);
    }
  }
}

TEST_P(Threads, AModelOfManyPiecesIsUpdatedCompletely) {
  const OptimizerSpec spec{.kind = GetParam(), .weight_decay = 1e-3};
  Rng rng(2, "whole");
  Floats whole = normals(rng, values);
  Servers servers(spec, whole, {std::make_shared<ThreadPool>(3)});
  Optimizer optimizer(spec, parameters);
  for (int t = 0; t < 3; ++t) {
    const Floats a = normals(rng, values), b = normals(rng, values);
    for (ShardStore& shard : servers.shards) shard.apply({UpdateKind::gradient, 0.1, 0.9}, std::vector<WeightedPart>{{a, 0.25}, {b, 0.75}});
    Floats sum(values);
    for (std::size_t i = 0; i < values; ++i) sum[i] = 0.25F * a[i] + 0.75F * b[i];
    optimizer.update(std::span(whole).first(parameters), std::span(sum).first(parameters), 0.1, 0.9);
    for (std::size_t i = parameters; i < values; ++i) whole[i] += sum[i];
  }
  Floats ahead = whole;
  optimizer.look_ahead(std::span(whole).first(parameters), 0.9, 0.1, std::span(ahead).first(parameters));
  double alignment = 0;
  for (std::size_t i = 0; i < parameters; ++i) alignment += static_cast<double>(whole[i]) * optimizer.first()[i];
  const Answers found = servers.answers(whole);
  EXPECT_EQ(found.plain, whole);
  EXPECT_EQ(found.ahead, ahead);
  EXPECT_NEAR(found.alignment, alignment, 1e-9 * static_cast<double>(values)) << "summed in another order";
}

/// A speculated update that is committed gives the same bits as apply(), whichever slices were speculated; one that is not committed
/// changes nothing.
TEST_P(Threads, SpeculatedUpdatesGiveTheSameBits) {
  const OptimizerSpec spec{.kind = GetParam(), .weight_decay = 1e-3};
  Rng rng(2, "speculated");
  const Floats initial = normals(rng, values);
  Servers plain(spec, initial, {});
  Servers early(spec, initial, {std::make_shared<ThreadPool>(3)});
  constexpr UpdateKind kinds[] = {UpdateKind::gradient, UpdateKind::gradient, UpdateKind::delta, UpdateKind::gradient};
  for (std::size_t t = 0; t < std::size(kinds); ++t) {
    const Floats a = normals(rng, values), b = normals(rng, values), wrong = normals(rng, values);
    const std::vector<WeightedPart> parts{{a, 0.25}, {b, 0.75}};
    const Update update{kinds[t], 0.1 * rng.uniform(), 0.9, 0.5};
    Floats snapshot(values);
    for (std::uint32_t server = 0; server < 2; ++server) {
      const std::vector<SliceId> own = layout.of(ServerId{server});
      ShardStore& shard = early.shards[server];
      Floats nowhere(values);
      const WeightedPart other{wrong, 1};
      shard.begin_speculation({UpdateKind::gradient, 0.7, 0.1, 1}, 0.3, nowhere);  // not committed
      shard.speculate({&other, 1}, std::span(own).first(1));
      if (t == 1) {  // so that another update comes
        shard.apply(update, parts);
        shard.snapshot(0.9, snapshot);
        continue;
      }
      shard.begin_speculation(update, 0.9, snapshot);
      shard.speculate(parts, std::span(own).last(1));
      shard.speculate(parts, std::span(own).last(own.size() / 2));  // one slice again
      shard.commit(parts);
    }
    for (ShardStore& shard : plain.shards) shard.apply(update, parts);
    const Answers expected = plain.answers(a);
    const Answers found = early.answers(a);
    EXPECT_EQ(found.plain, expected.plain) << t;
    EXPECT_EQ(found.ahead, expected.ahead) << t;
    EXPECT_EQ(snapshot, expected.ahead) << t;
    EXPECT_EQ(found.moments.first, expected.moments.first) << t;
    EXPECT_EQ(found.moments.second, expected.moments.second) << t;
    EXPECT_EQ(found.moments.updates, expected.moments.updates) << t;
    EXPECT_EQ(early.shards[0].version(), plain.shards[0].version());
  }
}

INSTANTIATE_TEST_SUITE_P(Rules, Threads, testing::Values(OptimizerKind::sgd, OptimizerKind::adamw));

}  // namespace
}  // namespace motley::store
