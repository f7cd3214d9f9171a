// A shard host: pushed contributions are summed, pulls are answered with snapshots, exports with a version.
#include "runtime/shard_host_for_tests.h"

namespace motley::runtime {
namespace {

TEST_F(ShardHostTest, SumsContributionsLikeTheStore) {
  make();
  ASSERT_GE(own.size(), 2U);
  host->attach({0}, left);
  host->attach({1}, right);
  for (std::uint64_t step = 0; step < 3; ++step) {
    push_all(right, 1, step);
    EXPECT_EQ(reported.size(), 2 * step + 1);
    push_all(left, 0, step);
    ASSERT_EQ(reported.size(), 2 * step + 2);
    const auto& gathered = std::get<wire::Gathered>(reported.back());
    EXPECT_EQ(gathered.worker, WorkerId{0});
    EXPECT_EQ(gathered.step, Step{step});
    apply(step + 1, {{{0}, {step}, 0.75}, {{1}, {step}, 0.25}});
    apply_by_hand({{contribution(0, step), 0.75}, {contribution(1, step), 0.25}});
    const auto exported = export_now(step + 1);
    EXPECT_EQ(exported->version, Version{step + 1});
    expect_same_values(*exported);
  }
  std::uint64_t values = 0;
  for (const SliceId id : own) values += layout[id].count;
  EXPECT_EQ(host->bytes_pushed(), 6 * values * sizeof(float));
}

TEST_F(ShardHostTest, SlicesOfContributionsCanInterleave) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  for (const SliceId id : own) {
    ASSERT_TRUE(push(left, head(0, 0, id), encoded(contribution(0, 0), id, 32)));
    ASSERT_TRUE(push(right, head(1, 0, id), encoded(contribution(1, 0), id, 32)));
  }
  EXPECT_EQ(reported.size(), 2U);
  apply(1, {{{1}, {0}, 1.0}});
  apply(2, {{{0}, {0}, 0.5}});
  apply_by_hand({{contribution(1, 0), 1.0}});
  apply_by_hand({{contribution(0, 0), 0.5}});
  expect_same_values(*export_now(2));
}

TEST_F(ShardHostTest, SpeculationChangesNoBit) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  for (std::uint64_t step = 0; step < 8; ++step) {
    const double weight = step < 6 ? 0.75 : 0.5;  // a prediction that comes true, and one that does not
    push_all(right, 1, step);
    push_all(left, 0, step);
    if (step == 4) {  // an expected part is discarded
      host->receive(wire::Discard{{1}, {step}});
      push_all(right, 1, 8);
      apply(step + 1, {{{0}, {step}, weight}, {{1}, {8}, 1 - weight}});
      apply_by_hand({{contribution(0, step), weight}, {contribution(1, 8), 1 - weight}});
    } else {
      const std::uint64_t other = step > 4 ? step + 4 : step;
      if (step > 4) push_all(right, 1, other);
      apply(step + 1, {{{0}, {step}, weight}, {{1}, {other}, 1 - weight}});
      apply_by_hand({{contribution(0, step), weight}, {contribution(1, other), 1 - weight}});
    }
    release(0, step + 1, 0.9);
    ASSERT_TRUE(sent(left, (step + 1) * own.size()));
    expect_sent(left, snapshot_by_hand(0.9), step * own.size());
    expect_same_values(*export_now(step + 1));
  }
}

TEST_F(ShardHostTest, SumsInPlaceAndReturnsBorrowedMemory) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  auto borrows = std::make_shared<int>(0);
  for (std::uint64_t step = 0; step < 4; ++step) {
    const std::vector<float> flat = contribution(0, step);
    for (const SliceId id : own) {
      const auto payload = std::as_bytes(std::span(flat).subspan(layout[id].offset, layout[id].count));
      // In the third step the last slice is received: the borrowed ones are copied.
      if (step == 2 && id == own.back())
        ASSERT_TRUE(push(left, head(0, step, id), encoded(flat, id, 32)));
      else
        ASSERT_TRUE(host->accept_in_place(left, head(0, step, id), payload, borrows));
    }
    ASSERT_TRUE(run_until(io, [&] { return reported.size() == 2 * step + 1; })) << "it was checked";
    EXPECT_EQ(borrows.use_count(), step == 2 ? 1 : 1 + static_cast<long>(own.size())) << step;
    EXPECT_FALSE(host->accept_in_place(right, head(0, step, own[0]), std::as_bytes(std::span(flat).first(layout[own[0]].count)), borrows))
        << "another worker's contribution";
    push_all(right, 1, step);
    apply(step + 1, {{{0}, {step}, 0.5}, {{1}, {step}, 0.5}});
    apply_by_hand({{contribution(0, step), 0.5}, {contribution(1, step), 0.5}});
    expect_same_values(*export_now(step + 1));
    EXPECT_EQ(borrows.use_count(), 1);
  }
}

TEST_F(ShardHostTest, DiscardedContributionsAreNotApplied) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  host->receive(wire::Discard{{0}, {0}});
  push_all(left, 0, 1);
  apply(1, {{{0}, {1}, 1.0}});
  apply_by_hand({{contribution(0, 1), 1.0}});
  expect_same_values(*export_now(1));
}

TEST_F(ShardHostTest, SnapshotsLookAhead) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  release(0, 1, 0.9);
  ASSERT_TRUE(sent(left, own.size()));
  expect_sent(left, snapshot_by_hand(0.9));
  for (const transport::BulkMessage& bulk_message : left.bulk_messages) {
    const auto& pulled = std::get<wire::Pulled>(bulk_message.head);
    EXPECT_EQ(pulled.worker, WorkerId{0});
    EXPECT_EQ(pulled.step, Step{1});
    EXPECT_EQ(pulled.version, Version{1});
  }
}

TEST_F(ShardHostTest, ASharedSnapshotLivesWhileItIsSent) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  release(0, 0);
  ASSERT_TRUE(sent(left, own.size()));
  release(1, 0);
  ASSERT_TRUE(sent(right, own.size()));
  for (std::size_t s = 0; s < own.size(); ++s) EXPECT_EQ(left.bulk_messages[s].payload.data(), right.bulk_messages[s].payload.data());
  const std::vector<float> before = snapshot_by_hand(0);
  for (std::uint64_t step = 0; step < 4; ++step) {  // later updates
    push_all(left, 0, step);
    apply(step + 1, {{{0}, {step}, 1.0}});
    apply_by_hand({{contribution(0, step), 1.0}});
  }
  for (std::size_t s = 0; s < own.size(); ++s) host->sent(left.bulk_messages[s].ticket);
  expect_same_values(*export_now(4));
  expect_sent(right, before);
  release(0, 4);  // of the new version
  ASSERT_TRUE(sent(left, 2 * own.size()));
  expect_sent(left, snapshot_by_hand(0), own.size());
}

TEST_F(ShardHostTest, ASnapshotRequestedBeforeACommitIsOfTheOldVersion) {
  make();
  host->attach({0}, left);
  const std::vector<float> before = snapshot_by_hand(0);
  push_all(left, 0, 0);
  release(0, 1);  // not made yet when the next line commits
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  release(0, 2);
  ASSERT_TRUE(sent(left, 2 * own.size()));
  expect_sent(left, before);
  expect_sent(left, snapshot_by_hand(0), own.size());
}

TEST_F(ShardHostTest, PullsWaitUntilTheWorkerAttaches) {
  make();
  release(0, 0);
  export_now(0);  // the snapshot is made before this
  run_ready(io);
  EXPECT_TRUE(left.bulk_messages.empty());
  host->attach({0}, left);
  run_ready(io);
  expect_sent(left, snapshot_by_hand(0));
  EXPECT_TRUE(right.bulk_messages.empty());
}

TEST_F(ShardHostTest, SendsNothingThroughAClosedConnection) {
  make();
  host->attach({0}, left);
  release(0, 0);
  ASSERT_TRUE(sent(left, own.size()));
  host->detach(left);
  const std::uint64_t ticket = left.bulk_messages[0].ticket;
  left.bulk_messages.clear();
  host->sent(ticket);  // late: ignored
  release(0, 1);
  export_now(0);
  run_ready(io);
  EXPECT_TRUE(left.bulk_messages.empty());
  host->attach({0}, right);  // the same worker on a new connection
  run_ready(io);
  expect_sent(right, snapshot_by_hand(0));
}

TEST_F(ShardHostTest, ExportsOptimizerStateAndContinuesFromIt) {
  make(adamw);
  host->attach({0}, left);
  for (std::uint64_t step = 0; step < 2; ++step) {
    push_all(left, 0, step);
    apply(step + 1, {{{0}, {step}, 1.0}});
    apply_by_hand({{contribution(0, step), 1.0}});
  }
  EXPECT_FALSE(export_now(2)->moments.has_value());
  const auto exported = export_now(2, true);
  ASSERT_TRUE(exported->moments.has_value());
  store::Moments expected;
  store->moments(expected);
  EXPECT_EQ(exported->moments->first, expected.first);
  EXPECT_EQ(exported->moments->second, expected.second);
  EXPECT_EQ(exported->moments->updates, 2U);
  EXPECT_EQ(exported->moments->rate, expected.rate);
  expect_same_values(*exported);

  std::vector<float> values(linear_values);
  store->values(values);
  make(adamw, {values, exported->moments, {2}});  // another server continues
  host->attach({0}, left);
  push_all(left, 0, 2);
  apply(3, {{{0}, {2}, 1.0}});
  apply_by_hand({{contribution(0, 2), 1.0}});
  expect_same_values(*export_now(3));
}

TEST_F(ShardHostTest, AnExportIsOfItsVersionThoughCommitsFollow) {
  make();
  host->attach({0}, left);
  host->receive(wire::Export{{0}, false});
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  host->receive(wire::Export{{1}, false});
  ASSERT_TRUE(run_until(io, [&] { return exports.size() == 2; }));
  EXPECT_EQ(exports[0]->version, Version{0});
  expect_same_values(*exports[0]);
  apply_by_hand({{contribution(0, 0), 1.0}});
  expect_same_values(*exports[1]);
}

class ShardHostBits : public ShardHostTest, public testing::WithParamInterface<int> {};

TEST_P(ShardHostBits, PushesAreDecodedBeforeTheyAreSummed) {
  const int bits = GetParam();
  make();
  host->attach({0}, left);
  push_all(left, 0, 0, bits);
  EXPECT_EQ(reported.size(), 1U);
  apply(1, {{{0}, {0}, 1.0}});
  std::vector<float> arrived = contribution(0, 0);
  float largest = 0;
  for (const float x : arrived) largest = std::max(largest, std::abs(x));
  for (const SliceId id : own) {
    const auto place = std::span(arrived).subspan(layout[id].offset, layout[id].count);
    ASSERT_TRUE(codec::make(bits).value()->decode(encoded(contribution(0, 0), id, bits), place).ok());
  }
  const double bound = bits == 16 ? largest / 256 : largest * 1.01 / (2 * 127) * 1.001;  // error bounds of the codecs
  for (std::size_t i = 0; i < arrived.size(); ++i) EXPECT_NEAR(arrived[i], contribution(0, 0)[i], bound);
  apply_by_hand({{arrived, 1.0}});
  expect_same_values(*export_now(1));
}

TEST_P(ShardHostBits, SendsOneEncodedChangeToTheWholePullClass) {
  const int bits = GetParam();
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  release(0, 0, 0, bits);
  release(1, 0, 0, bits);
  ASSERT_TRUE(sent(left, own.size()) && sent(right, own.size()));
  const std::vector<float> before = snapshot_by_hand(0);
  expect_sent(left, before);  // the first pull: the values themselves
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  release(0, 1, 0, bits);
  release(1, 1, 0, bits);
  ASSERT_TRUE(sent(left, 2 * own.size()) && sent(right, 2 * own.size()));
  const std::vector<float> now = snapshot_by_hand(0);
  for (std::size_t s = own.size(); s < 2 * own.size(); ++s) {
    const store::Slice& slice = layout[own[s - own.size()]];
    const auto payload = left.bulk_messages[s].payload;
    EXPECT_EQ(payload.data(), right.bulk_messages[s].payload.data()) << "encoded once for both";
    EXPECT_LT(payload.size(), slice.count * sizeof(float)) << "smaller than the values";
    std::vector<float> held(before.begin() + slice.offset, before.begin() + slice.offset + slice.count);
    ASSERT_TRUE(store::apply_change(slice, static_cast<std::uint8_t>(bits), payload, held, held));
    float largest = 0;
    for (std::size_t i = 0; i < slice.count; ++i) largest = std::max(largest, std::abs(now[slice.offset + i] - before[slice.offset + i]));
    for (std::size_t i = 0; i < slice.count; ++i) EXPECT_NEAR(held[i], now[slice.offset + i], 0.01 * largest + 1e-6);
  }
  release(0, 2, 0, 32);  // the same version in fp32
  ASSERT_TRUE(sent(left, 3 * own.size()));
  expect_sent(left, now, 2 * own.size());
}

INSTANTIATE_TEST_SUITE_P(Codecs, ShardHostBits, testing::Values(16, 8),
                         [](const auto& bits) { return "Bits" + std::to_string(bits.param); });

TEST_F(ShardHostTest, SlicesAreDecodedBeforeTheyAreApplied) {
  make();
  host->attach(WorkerId{0}, left);
  host->attach(WorkerId{1}, right);
  std::vector<std::vector<float>> decoded(2, std::vector<float>(linear_values));
  for (std::uint64_t step = 0; step < 20; ++step) {
    std::vector<wire::Part> parts;
    std::vector<std::pair<std::vector<float>, double>> by_hand;
    for (const std::uint32_t worker : {0U, 1U}) {
      push_all(worker == 0 ? left : right, worker, step, 4);
      for (const SliceId id : own) {
        const std::span<float> place = std::span(decoded[worker]).subspan(layout[id].offset, layout[id].count);
        ASSERT_TRUE(codec::make(4).value()->decode(encoded(contribution(worker, step), id, 4), place).ok());
      }
      parts.push_back({.worker = {worker}, .step = {step}, .weight = 0.5});
      by_hand.emplace_back(decoded[worker], 0.5);
    }
    apply(step + 1, parts);
    apply_by_hand(by_hand);
  }
  expect_same_values(*export_now(20));
}

TEST_F(ShardHostTest, ReportsNothingAfterDestruction) {
  make();
  host->attach({0}, left);
  release(0, 0);
  host->receive(wire::Export{{0}, true});
  host.reset();
  run_ready(io);
  EXPECT_TRUE(left.bulk_messages.empty());
  EXPECT_TRUE(exports.empty());
}

}  // namespace
}  // namespace motley::runtime
