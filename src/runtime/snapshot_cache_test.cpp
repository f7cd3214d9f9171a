// The snapshot cache: what is shared, what is made anew, which format is predicted.
#include "runtime/snapshot_cache.h"

#include "runtime/store_thread_for_tests.h"

namespace motley::runtime {
namespace {

class SnapshotCacheTest : public StoreThreadFixture {
 protected:
  static protocol::Snapshot request(std::uint32_t worker, double rho = 0, bool bf16_transfer = false) {
    return {.worker = {worker}, .step = {}, .rho = rho, .bf16_transfer = bf16_transfer};
  }
  SharedSnapshot make(const protocol::Snapshot& wanted) {
    EXPECT_EQ(cache.find_or_make(wanted), nullptr);
    EXPECT_TRUE(transport::run_until(io, [&] { return !ready.empty(); }));
    const SharedSnapshot made = ready.back();
    ready.clear();
    return made;
  }
  static wire::Apply update_of(std::vector<std::uint32_t> workers) {
    wire::Apply update;
    for (const std::uint32_t worker : workers) update.parts.push_back({.worker = {worker}, .step = {}});
    return update;
  }

  std::vector<SharedSnapshot> ready;
  SnapshotCache cache{layout, server, Version{}, *thread,
                      [this](const SnapshotKey&, const SharedSnapshot& snapshot) { ready.push_back(snapshot); }};
};

TEST_F(SnapshotCacheTest, WorkersOfOneFormatShareASnapshot) {
  const SharedSnapshot made = make(request(0, 0.9));
  EXPECT_EQ(cache.find_or_make(request(1, 0.9)), made);
  const SharedSnapshot other = make(request(1, 0.5));
  EXPECT_NE(other, made);
  EXPECT_NE(make(request(2, 0.9, /*bf16_transfer=*/true)), made);
}

TEST_F(SnapshotCacheTest, HoldsTheStoresValues) {
  const SharedSnapshot made = make(request(0));
  const std::vector<float> initial = linear_start();
  for (const SliceId id : own) {
    EXPECT_TRUE(made->has(id));
    const auto expected = std::as_bytes(std::span(initial).subspan(layout[id].offset, layout[id].count));
    EXPECT_TRUE(std::ranges::equal(made->payload(layout, id), expected));
  }
}

TEST_F(SnapshotCacheTest, IsMadeOnceWhileRequestsWait) {
  Gate gate;
  block(gate);
  EXPECT_EQ(cache.find_or_make(request(0)), nullptr);
  EXPECT_EQ(cache.find_or_make(request(1)), nullptr);
  gate.open();
  finish_work();
  EXPECT_EQ(ready.size(), 1U);
}

TEST_F(SnapshotCacheTest, IsFreedWhenNoWorkerUsesIt) {
  const std::weak_ptr<Snapshot> made = make(request(0));
  EXPECT_TRUE(made.expired());
  EXPECT_NE(make(request(0)), nullptr);
}

TEST_F(SnapshotCacheTest, NewVersionsAreMadeAnew) {
  const SharedSnapshot made = make(request(0));
  cache.begin_version(Version{1}, std::nullopt);
  EXPECT_NE(make(request(0)), made);
  EXPECT_EQ(cache.key_of(request(0)).version, Version{1});
}

TEST_F(SnapshotCacheTest, LateSnapshotsOfOldVersionsAreNotKept) {
  Gate gate;
  block(gate);
  EXPECT_EQ(cache.find_or_make(request(0)), nullptr);
  cache.begin_version(Version{1}, std::nullopt);
  gate.open();
  finish_work();
  ASSERT_EQ(ready.size(), 1U) << "the worker that waits is sent it";
  const SharedSnapshot old = ready.back();
  ready.clear();
  EXPECT_NE(make(request(0)), old);
}

TEST_F(SnapshotCacheTest, FindsTheSnapshotThatTheUpdateWrites) {
  const UpdateSnapshot written = make_update_snapshot(layout, Version{1}, {0.9, false});
  cache.begin_version(Version{1}, written);
  EXPECT_EQ(cache.find_or_make(request(0, 0.9)), written.snapshot);
  EXPECT_FALSE(written.snapshot->has(own[0])) << "no slice is written yet";
  EXPECT_EQ(cache.find_or_make(request(0, 0.5)), nullptr) << "another format";
}

TEST_F(SnapshotCacheTest, PredictsTheFormatOfTheLastRequests) {
  cache.note_format(request(0, 0.9));
  EXPECT_EQ(cache.predicted_format(update_of({0, 1})), store::SnapshotFormat(0.9, false));
  cache.note_format(request(1, 0.5, /*bf16_transfer=*/true));
  EXPECT_EQ(cache.predicted_format(update_of({0, 1})), store::SnapshotFormat(0.5, true));
  EXPECT_EQ(cache.predicted_format(update_of({0})), store::SnapshotFormat(0.5, false));
  cache.forget(WorkerId{1});
  EXPECT_EQ(cache.predicted_format(update_of({0, 1})), store::SnapshotFormat(0.5, false));
}

TEST_F(SnapshotCacheTest, EncodesChangesForAPullClass) {
  protocol::Snapshot whole{.worker = {0}, .step = {}, .bits = 8, .pull_class = 8};
  EXPECT_NE(make(whole)->flat, nullptr);
  protocol::Snapshot change{.worker = {1}, .step = {}, .bits = 8, .pull_class = 8, .first_of_class = true, .whole = false};
  cache.begin_version(Version{1}, std::nullopt);
  const SharedSnapshot made = make(change);
  EXPECT_EQ(made->flat, nullptr);
  for (const SliceId id : own) EXPECT_EQ(made->payload(layout, id).size(), codec::encoded_bytes(layout[id].bits(8), layout[id].count));
}

}  // namespace
}  // namespace motley::runtime
