// The update engine: when an update begins, which snapshot it writes, and that speculated slices leave the same bits.
#include "runtime/update_engine.h"

#include <cstring>
#include <numeric>

#include "runtime/store_thread_for_tests.h"

namespace motley::runtime {
namespace {

class UpdateEngineTest : public StoreThreadFixture {
 protected:
  void store_contribution(std::uint32_t worker, std::uint64_t step) {
    for (const SliceId id : own) {
      const wire::Push push{.worker = {worker}, .step = {step}, .slice = id, .bits = 32};
      const std::size_t bytes = layout[id].count * sizeof(float);
      const std::span<std::byte> buffer = contributions.receive_buffer(connection, push, bytes, false);
      ASSERT_EQ(buffer.size(), bytes);
      const std::vector<float> values(layout[id].count, gradient(worker, step));
      std::memcpy(buffer.data(), values.data(), bytes);
      contributions.received(connection, push, false);
    }
  }
  static float gradient(std::uint32_t worker, std::uint64_t step) {
    return 0.5F + static_cast<float>(worker) + 0.1F * static_cast<float>(step);
  }
  static std::vector<wire::Part> parts_of(std::uint64_t step) {
    return {{.worker = {0}, .step = {step}, .weight = 0.75}, {.worker = {1}, .step = {step}, .weight = 0.25}};
  }
  static protocol::Commit commit_of(std::uint64_t version, bool speculated = false, bool expects_next = false) {
    wire::Apply update{.version = {version}, .kind = wire::UpdateKind::gradient, .rate = 0.1, .momentum = 0.9, .share = 1, .parts = {}};
    update.parts = parts_of(version);
    update.next_rate = 0.1;
    return {update, speculated, expects_next};
  }
  void apply_by_hand(std::uint64_t version) {
    const std::vector<float> left(linear_values, gradient(0, version)), right(linear_values, gradient(1, version));
    twin.apply({store::UpdateKind::gradient, 0.1, 0.9, 1}, std::vector<store::WeightedPart>{{left, 0.75}, {right, 0.25}});
  }
  std::vector<float> values() {
    std::vector<float> flat(linear_values);
    thread->run([&](store::ShardStore& store) { store.values(flat); });
    finish_work();
    return flat;
  }
  std::vector<float> values_by_hand() const {
    std::vector<float> flat(linear_values);
    twin.values(flat);
    return flat;
  }
  Version version() {
    Version found;
    thread->run([&](store::ShardStore& store) { found = store.version(); });
    finish_work();
    return found;
  }

  FakeConnection connection;
  store::ShardStore twin{layout, server, {}, linear_start()};
  std::vector<SliceId> written;
  SharedSnapshot last_written;
  ReceiveBuffers contributions{layout, server, *thread, [](const wire::Push&) {}};
  SnapshotCache snapshots{layout, server, Version{}, *thread, [](const SnapshotKey&, const SharedSnapshot&) {}};
  UpdateEngine engine{layout, *thread, contributions, snapshots, [this](const SharedSnapshot& snapshot, std::vector<SliceId> slices) {
                        last_written = snapshot;
                        written.insert(written.end(), slices.begin(), slices.end());
                      }};
};

TEST_F(UpdateEngineTest, AppliesTheContributionsItTakes) {
  store_contribution(0, 1);
  store_contribution(1, 1);
  engine.commit(commit_of(1));
  EXPECT_EQ(contributions.find({WorkerId{0}, Step{1}}), nullptr);
  engine.flush();
  apply_by_hand(1);
  EXPECT_EQ(values(), values_by_hand());
  EXPECT_TRUE(written.empty()) << "no worker asked for parameters";
}

TEST_F(UpdateEngineTest, AnUpdateBeginsWithTheNextTurnAtTheLatest) {
  store_contribution(0, 1);
  store_contribution(1, 1);
  engine.commit(commit_of(1));
  EXPECT_EQ(version(), Version{0}) << "it waits for the first pull";
  EXPECT_EQ(version(), Version{1});
}

TEST_F(UpdateEngineTest, WritesTheSnapshotOfTheFirstPull) {
  store_contribution(0, 1);
  store_contribution(1, 1);
  engine.commit(commit_of(1));
  const protocol::Snapshot request{.worker = {0}, .step = {2}, .rho = 0.9};
  snapshots.note_format(request);
  engine.expect_pull();
  engine.flush();
  const SharedSnapshot found = snapshots.find_or_make(request);
  ASSERT_NE(found, nullptr) << "no further snapshot is made";
  ASSERT_TRUE(transport::run_until(io, [&] { return written.size() == own.size(); }));
  EXPECT_EQ(last_written, found);
  apply_by_hand(1);
  std::vector<float> expected(linear_values);
  twin.snapshot(0.9, expected);
  for (const SliceId id : own)
    for (std::uint64_t i = layout[id].offset; i < layout[id].offset + layout[id].count; ++i)
      EXPECT_EQ(found->flat->floats()[i], expected[i]);
}

TEST_F(UpdateEngineTest, ASpeculatedUpdateLeavesTheSameBits) {
  for (std::uint64_t version = 1; version <= 3; ++version) {
    store_contribution(0, version);
    store_contribution(1, version);
    if (version > 1)  // all slices but the last are speculated
      for (std::size_t s = 0; s + 1 < own.size(); ++s) engine.speculate({own[s], parts_of(version)});
    if (version == 2) finish_work();
    written.clear();
    engine.commit(commit_of(version, version > 1, true));
    engine.flush();
    apply_by_hand(version);
    EXPECT_EQ(values(), values_by_hand()) << "version " << version;
    EXPECT_EQ(written.size(), version > 1 ? own.size() : 0U);
  }
}

TEST_F(UpdateEngineTest, AWrongSpeculationChangesNothing) {
  store_contribution(0, 1);
  store_contribution(1, 1);
  engine.commit(commit_of(1, false, true));
  engine.flush();
  store_contribution(0, 2);
  store_contribution(1, 2);
  for (const SliceId id : own) engine.speculate({id, parts_of(2)});
  finish_work();
  apply_by_hand(1);
  EXPECT_EQ(values(), values_by_hand());
  engine.commit(commit_of(2, /*speculated=*/false));
  engine.flush();
  apply_by_hand(2);
  EXPECT_EQ(values(), values_by_hand());
}

TEST_F(UpdateEngineTest, SpeculatesNothingOnceAPartIsDiscarded) {
  store_contribution(0, 1);
  store_contribution(1, 1);
  engine.commit(commit_of(1, false, true));
  engine.flush();
  store_contribution(0, 2);
  engine.speculate({own[0], parts_of(2)});  // worker 1's part is gone
  finish_work();
  apply_by_hand(1);
  EXPECT_EQ(values(), values_by_hand());
}

}  // namespace
}  // namespace motley::runtime
