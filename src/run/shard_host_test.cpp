#include "run/shard_host.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <cmath>
#include <cstring>

#include "run/fake_connection_for_tests.h"
#include "run/linear_source_for_tests.h"
#include "transport/ear_for_tests.h"

namespace motley::run {
namespace {

using transport::run_ready;
using transport::run_until;

constexpr store::OptimizerSpec adamw{.kind = store::OptimizerKind::adamw, .weight_decay = 0.01};

/// A contribution that anybody can tell from another's.
std::vector<float> contribution(std::uint32_t worker, std::uint64_t step) {
  std::vector<float> values(linear_values);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i + 1) * 0.25F - static_cast<float>(worker) * 0.6F + static_cast<float>(step) * 0.07F;
  return values;
}

wire::Apply update_of(std::uint64_t version, std::vector<wire::Part> parts) {
  return {.version = {version}, .kind = wire::UpdateKind::gradient, .rate = 0.1, .momentum = 0.9, .share = 1, .parts = std::move(parts)};
}

class ShardHostTest : public testing::Test, private ShardOwner {
 protected:
  /// Server 0 of two: slices 0 and 3, say, are its own and the others are not.
  void make(const store::OptimizerSpec& optimizer = {}, const Beginning& beginning = {linear_start(), std::nullopt, {}}) {
    host.emplace(io, server, layout, optimizer, beginning, static_cast<ShardOwner&>(*this));
    store.emplace(layout, server, optimizer, beginning.values);
    if (beginning.moments) store->restore(*beginning.moments, beginning.version);
  }

  // What a connection does ---------------------------------------------------------------------------------------------------------------

  static wire::Push head(std::uint32_t worker, std::uint64_t step, SliceId slice, int bits = 32) {
    return {.worker = {worker}, .step = {step}, .slice = slice, .bits = static_cast<std::uint8_t>(bits)};
  }
  std::vector<std::byte> encoded(const std::vector<float>& flat, SliceId id, int bits) const {
    std::vector<std::byte> bytes;
    codec::make(bits).value()->encode(std::span(flat).subspan(layout[id].offset, layout[id].count), bytes);
    return bytes;
  }
  /// False: refused.
  bool push(FakeConnection& from, const wire::Push& what, std::span<const std::byte> payload) {
    const std::span<std::byte> room = host->room(from, what, payload.size());
    if (room.size() != payload.size()) return false;
    std::memcpy(room.data(), payload.data(), payload.size());
    host->received(what);
    return true;
  }
  void push_all(FakeConnection& from, std::uint32_t worker, std::uint64_t step, int bits = 32) {
    for (const SliceId id : own)
      ASSERT_TRUE(push(from, head(worker, step, id, bits), encoded(contribution(worker, step), id, bits))) << "slice " << id.value;
  }

  // What the chief says ------------------------------------------------------------------------------------------------------------------

  void apply(std::uint64_t version, std::vector<wire::Part> parts) { host->hear(update_of(version, std::move(parts))); }
  void release(std::uint32_t worker, std::uint64_t step, double rho = 0, int bits = 32) {
    host->hear(wire::Release{{worker}, {step}, rho, static_cast<std::uint8_t>(bits)});
  }
  std::shared_ptr<const Exported> export_now(std::uint64_t version, bool state = false) {
    exports.clear();
    host->hear(wire::Export{{version}, state});
    EXPECT_TRUE(run_until(io, [&] { return !exports.empty(); }));
    return exports.empty() ? nullptr : exports[0];
  }

  // The same by hand ---------------------------------------------------------------------------------------------------------------------

  void apply_by_hand(const std::vector<std::pair<std::vector<float>, double>>& parts) {
    std::vector<store::WeightedPart> weighted;
    for (const auto& [flat, weight] : parts) weighted.push_back({flat, weight});
    store->apply({store::UpdateKind::gradient, 0.1, 0.9, 1}, weighted);
  }
  std::vector<float> snapshot_by_hand(double rho) const {
    std::vector<float> flat(linear_values);
    store->snapshot(rho, flat);
    return flat;
  }
  void expect_same_values(const Exported& exported) const {
    std::vector<float> flat(linear_values);
    store->values(flat);
    for (const SliceId id : own)
      for (std::uint64_t i = layout[id].offset; i < layout[id].offset + layout[id].count; ++i)
        EXPECT_EQ(exported.values->floats()[i], flat[i]) << "value " << i;
  }
  /// Slices of `snapshot`, whole, in order, as `bits` say.
  void expect_sent(const FakeConnection& to, const std::vector<float>& snapshot, std::size_t first = 0, int bits = 32) const {
    ASSERT_GE(to.parcels.size(), first + own.size());
    for (std::size_t s = 0; s < own.size(); ++s) {
      const transport::Parcel& parcel = to.parcels[first + s];
      EXPECT_EQ(std::get<wire::Pulled>(parcel.head).slice, own[s]);
      EXPECT_EQ(parcel.priority, own[s].value);
      const auto expected = encoded(snapshot, own[s], bits);
      EXPECT_TRUE(std::ranges::equal(parcel.payload, expected)) << "slice " << own[s].value;
    }
  }
  auto sent(const FakeConnection& connection, std::size_t parcels) {
    return run_until(io, [&, parcels] { return connection.parcels.size() >= parcels; });
  }

  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  store::Layout layout = linear_layout(2);
  ServerId server{0};
  std::vector<SliceId> own = layout.of(server);
  std::vector<SliceId> foreign = layout.of(ServerId{1});
  FakeConnection left, right;
  std::vector<wire::Message> said;  // to the chief
  std::vector<std::shared_ptr<const Exported>> exports;
  std::optional<store::ShardStore> store;
  std::optional<ShardHost> host;

 private:
  void to_chief(const wire::Message& message) override { said.push_back(message); }
  void exported(const std::shared_ptr<const Exported>& what) override { exports.push_back(what); }
};

TEST_F(ShardHostTest, SumsWhatWasPushedAsTheStoreDoes) {
  make();
  ASSERT_GE(own.size(), 2U);
  host->attach({0}, left);
  host->attach({1}, right);
  for (std::uint64_t step = 0; step < 3; ++step) {
    push_all(right, 1, step);
    EXPECT_EQ(said.size(), 2 * step + 1);
    push_all(left, 0, step);
    ASSERT_EQ(said.size(), 2 * step + 2);
    const auto& gathered = std::get<wire::Gathered>(said.back());
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

TEST_F(ShardHostTest, SlicesOfSeveralContributionsMayInterleave) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  for (const SliceId id : own) {
    ASSERT_TRUE(push(left, head(0, 0, id), encoded(contribution(0, 0), id, 32)));
    ASSERT_TRUE(push(right, head(1, 0, id), encoded(contribution(1, 0), id, 32)));
  }
  EXPECT_EQ(said.size(), 2U);
  apply(1, {{{1}, {0}, 1.0}});
  apply(2, {{{0}, {0}, 0.5}});
  apply_by_hand({{contribution(1, 0), 1.0}});
  apply_by_hand({{contribution(0, 0), 0.5}});
  expect_same_values(*export_now(2));
}

TEST_F(ShardHostTest, DiscardsWhatTheChiefDoesNotWant) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  host->hear(wire::Discard{{0}, {0}});
  push_all(left, 0, 1);
  apply(1, {{{0}, {1}, 1.0}});
  apply_by_hand({{contribution(0, 1), 1.0}});
  expect_same_values(*export_now(1));
}

TEST_F(ShardHostTest, SendsSnapshotsThatLookAhead) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  release(0, 1, 0.9);
  ASSERT_TRUE(sent(left, own.size()));
  expect_sent(left, snapshot_by_hand(0.9));
  for (const transport::Parcel& parcel : left.parcels) {
    const auto& pulled = std::get<wire::Pulled>(parcel.head);
    EXPECT_EQ(pulled.worker, WorkerId{0});
    EXPECT_EQ(pulled.step, Step{1});
    EXPECT_EQ(pulled.version, Version{1});
  }
}

TEST_F(ShardHostTest, OneSnapshotServesAllAndStaysWhileItIsSent) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  release(0, 0);
  ASSERT_TRUE(sent(left, own.size()));
  release(1, 0);
  ASSERT_TRUE(sent(right, own.size()));
  for (std::size_t s = 0; s < own.size(); ++s) EXPECT_EQ(left.parcels[s].payload.data(), right.parcels[s].payload.data());
  const std::vector<float> before = snapshot_by_hand(0);
  for (std::uint64_t step = 0; step < 4; ++step) {  // the world moves on
    push_all(left, 0, step);
    apply(step + 1, {{{0}, {step}, 1.0}});
    apply_by_hand({{contribution(0, step), 1.0}});
  }
  for (std::size_t s = 0; s < own.size(); ++s) host->sent(left.parcels[s].ticket);
  expect_same_values(*export_now(4));
  expect_sent(right, before);
  release(0, 4);  // of the new version
  ASSERT_TRUE(sent(left, 2 * own.size()));
  expect_sent(left, snapshot_by_hand(0), own.size());
}

TEST_F(ShardHostTest, ASnapshotOrderedBeforeACommitShowsWhatWasBefore) {
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

TEST_F(ShardHostTest, WhatIsForAMemberWaitsUntilItAttaches) {
  make();
  release(0, 0);
  export_now(0);  // the snapshot was made before this
  run_ready(io);
  EXPECT_TRUE(left.parcels.empty());
  host->attach({0}, left);
  run_ready(io);
  expect_sent(left, snapshot_by_hand(0));
  EXPECT_TRUE(right.parcels.empty());
}

TEST_F(ShardHostTest, SendsNothingThroughAConnectionThatIsGone) {
  make();
  host->attach({0}, left);
  release(0, 0);
  ASSERT_TRUE(sent(left, own.size()));
  host->detach(left);
  const std::uint64_t ticket = left.parcels[0].ticket;
  left.parcels.clear();
  host->sent(ticket);  // late, and nothing to it
  release(0, 1);
  export_now(0);
  run_ready(io);
  EXPECT_TRUE(left.parcels.empty());
  host->attach({0}, right);  // the same member by another way
  run_ready(io);
  expect_sent(right, snapshot_by_hand(0));
}

TEST_F(ShardHostTest, RefusesWhatIsNotItsOwnOrNotOfItsSize) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  const std::size_t bytes = layout[own[0]].count * sizeof(float);
  EXPECT_EQ(host->room(left, head(0, 0, own[0]), bytes).size(), bytes);
  EXPECT_TRUE(host->room(left, head(0, 0, foreign[0]), layout[foreign[0]].count * sizeof(float)).empty());
  EXPECT_TRUE(host->room(left, head(0, 0, SliceId{99}), bytes).empty());
  EXPECT_TRUE(host->room(left, head(0, 0, own[0]), bytes - 1).empty());
  EXPECT_TRUE(host->room(left, head(0, 0, own[0]), bytes + 4).empty());
  EXPECT_TRUE(host->room(left, head(0, 0, own[0]), 0).empty());
  EXPECT_TRUE(host->room(left, head(0, 0, own[0], 7), bytes).empty()) << "no codec of 7 bits";
  EXPECT_TRUE(host->room(left, head(0, 0, own[0], 16), bytes).empty()) << "half the bytes";
  EXPECT_TRUE(host->room(left, head(1, 0, own[0]), bytes).empty()) << "another's member";
  EXPECT_TRUE(host->room(left, head(2, 0, own[0]), bytes).empty()) << "nobody's member";
  EXPECT_TRUE(said.empty());
}

TEST_F(ShardHostTest, WhoIsForgottenPushesIntoTheVoid) {
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  ASSERT_TRUE(push(left, head(0, 0, own[0]), encoded(contribution(0, 0), own[0], 32)));  // in part
  host->hear(wire::Forget{{0}});
  for (std::size_t s = 1; s < own.size(); ++s) EXPECT_TRUE(push(left, head(0, 0, own[s]), encoded(contribution(0, 0), own[s], 32)));
  EXPECT_TRUE(push(left, head(0, 1, own[0], 8), encoded(contribution(0, 1), own[0], 8)));
  EXPECT_TRUE(said.empty());
  release(0, 5);
  host->attach({0}, left);  // it does not come back under that name
  export_now(0);
  run_ready(io);
  EXPECT_TRUE(left.parcels.empty());
  push_all(right, 1, 0);
  apply(1, {{{1}, {0}, 1.0}});
  apply_by_hand({{contribution(1, 0), 1.0}});
  expect_same_values(*export_now(1));
}

/// A transport writes into the room it was given until the slice is there, whatever the chief says meanwhile. Address and thread sanitizers
/// see it when that memory is gone.
TEST_F(ShardHostTest, RoomStaysThoughItsMemberIsForgottenMeanwhile) {
  for (const int bits : {32, 8}) {
    make();
    host->attach({0}, left);
    ASSERT_TRUE(push(left, head(0, 0, own[0], bits), encoded(contribution(0, 0), own[0], bits)));
    const auto payload = encoded(contribution(0, 0), own[1], bits);
    const std::span<std::byte> room = host->room(left, head(0, 0, own[1], bits), payload.size());
    ASSERT_EQ(room.size(), payload.size());
    host->hear(wire::Forget{{0}});
    export_now(0);  // the store thread has let go of whatever it held
    std::memcpy(room.data(), payload.data(), payload.size());
    host->received(head(0, 0, own[1], bits));
    EXPECT_TRUE(said.empty());
  }
}

TEST_F(ShardHostTest, RoomInTheVoidStaysThoughAnotherAsksForMore) {
  make();
  host->hear(wire::Forget{{0}});
  host->hear(wire::Forget{{1}});
  const auto few = encoded(contribution(0, 0), own[0], 8);
  const auto many = encoded(contribution(1, 0), own[0], 32);
  const std::span<std::byte> small_room = host->room(left, head(0, 0, own[0], 8), few.size());
  const std::span<std::byte> large_room = host->room(right, head(1, 0, own[0]), many.size());
  ASSERT_EQ(small_room.size(), few.size());
  ASSERT_EQ(large_room.size(), many.size());
  std::memcpy(small_room.data(), few.data(), few.size());
  std::memcpy(large_room.data(), many.data(), many.size());
  host->received(head(0, 0, own[0], 8));
  host->received(head(1, 0, own[0]));
  EXPECT_TRUE(said.empty());
}

TEST_F(ShardHostTest, WhatAForgottenMemberHadGatheredMayStillBeApplied) {
  make();
  host->attach({0}, left);
  push_all(left, 0, 0);
  host->hear(wire::Forget{{0}});
  apply(1, {{{0}, {0}, 1.0}});
  apply_by_hand({{contribution(0, 0), 1.0}});
  expect_same_values(*export_now(1));
}

TEST_F(ShardHostTest, ExportsTheOptimizerWhenAskedAndGoesOnFromIt) {
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
  make(adamw, {values, exported->moments, {2}});  // another server goes on
  host->attach({0}, left);
  push_all(left, 0, 2);
  apply(3, {{{0}, {2}, 1.0}});
  apply_by_hand({{contribution(0, 2), 1.0}});
  expect_same_values(*export_now(3));
}

TEST_F(ShardHostTest, AnExportShowsItsVersionThoughCommitsFollow) {
  make();
  host->attach({0}, left);
  host->hear(wire::Export{{0}, false});
  push_all(left, 0, 0);
  apply(1, {{{0}, {0}, 1.0}});
  host->hear(wire::Export{{1}, false});
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
  EXPECT_EQ(said.size(), 1U);
  apply(1, {{{0}, {0}, 1.0}});
  std::vector<float> arrived = contribution(0, 0);
  float largest = 0;
  for (const float x : arrived) largest = std::max(largest, std::abs(x));
  for (const SliceId id : own) {
    const auto place = std::span(arrived).subspan(layout[id].offset, layout[id].count);
    ASSERT_TRUE(codec::make(bits).value()->decode(encoded(contribution(0, 0), id, bits), place).ok());
  }
  const double bound = bits == 16 ? largest / 256 : largest * 1.01 / (2 * 127) * 1.001;  // of the two codecs' headers
  for (std::size_t i = 0; i < arrived.size(); ++i) EXPECT_NEAR(arrived[i], contribution(0, 0)[i], bound);
  apply_by_hand({{arrived, 1.0}});
  expect_same_values(*export_now(1));
}

TEST_P(ShardHostBits, PullsAreEncodedOnceForAll) {
  const int bits = GetParam();
  make();
  host->attach({0}, left);
  host->attach({1}, right);
  release(0, 0, 0, bits);
  release(1, 0, 0, bits);
  ASSERT_TRUE(sent(left, own.size()));
  ASSERT_TRUE(sent(right, own.size()));
  expect_sent(left, snapshot_by_hand(0), 0, bits);
  std::uint64_t bytes = 0;
  for (std::size_t s = 0; s < own.size(); ++s) {
    EXPECT_EQ(left.parcels[s].payload.data(), right.parcels[s].payload.data());
    bytes += left.parcels[s].payload.size();
  }
  EXPECT_EQ(host->bytes_pulled(), 2 * bytes);
  release(0, 1, 0, 32);  // the same version as it is
  ASSERT_TRUE(sent(left, 2 * own.size()));
  expect_sent(left, snapshot_by_hand(0), own.size());
}

INSTANTIATE_TEST_SUITE_P(Codecs, ShardHostBits, testing::Values(16, 8),
                         [](const auto& bits) { return "Bits" + std::to_string(bits.param); });

TEST_F(ShardHostTest, DestroyedWithWorkUnderWayItSaysNothingMore) {
  make();
  host->attach({0}, left);
  release(0, 0);
  host->hear(wire::Export{{0}, true});
  host.reset();
  run_ready(io);
  EXPECT_TRUE(left.parcels.empty());
  EXPECT_TRUE(exports.empty());
}

}  // namespace
}  // namespace motley::run
