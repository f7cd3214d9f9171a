// The parameter sender: which slices leave through which connection, in which order, and how long their memory is kept.
#include "runtime/parameter_sender.h"

#include <numeric>

#include "runtime/constants.h"
#include "runtime/fake_connection_for_tests.h"
#include "runtime/linear_source_for_tests.h"
#include "transport/recording_callbacks_for_tests.h"

namespace motley::runtime {
namespace {

constexpr WorkerId ann{0};
constexpr WorkerId bob{1};
constexpr std::size_t slices = 3 * slices_per_send + 1;

struct ParameterSenderTest : testing::Test {
  const std::vector<store::TensorPlace> tensors{{0, 4 * slices, TensorKind::parameter}};
  store::Layout layout = store::cut(tensors, 4, 1);
  boost::asio::io_context io;
  FakeConnection left, right;
  ParameterSender sender{io, layout};

  static SnapshotKey key(std::uint64_t version) { return {.version = {version}}; }
  /// All slices, of which the update has written none.
  [[nodiscard]] SharedSnapshot unwritten(std::uint64_t version) const { return make_update_snapshot(layout, {version}, {}).snapshot; }
  [[nodiscard]] SharedSnapshot complete(std::uint64_t version) const {
    SharedSnapshot made = unwritten(version);
    made->written.clear();
    return made;
  }
  [[nodiscard]] Pull pull(WorkerId worker, std::uint64_t version, SharedSnapshot snapshot) const {
    Pull made{key(version), {}, std::move(snapshot)};
    for (const SliceId id : layout.of(ServerId{0}))
      made.slices.push_back({.worker = worker, .step = {version}, .version = {version}, .slice = id, .bits = 32});
    return made;
  }
  static std::vector<std::uint64_t> steps(const FakeConnection& connection) {
    std::vector<std::uint64_t> found;
    for (const transport::BulkMessage& sent : connection.bulk_messages) {
      const std::uint64_t step = std::get<wire::Pulled>(sent.head).step.value;
      if (found.empty() || found.back() != step) found.push_back(step);
    }
    return found;
  }
};

TEST_F(ParameterSenderTest, PullsWaitForTheirConnectionAndSnapshot) {
  sender.add(ann, pull(ann, 0, complete(0)));
  EXPECT_TRUE(left.bulk_messages.empty());
  sender.attach(ann, left);
  EXPECT_EQ(left.bulk_messages.size(), slices);
  sender.add(ann, pull(ann, 1, nullptr));
  EXPECT_EQ(left.bulk_messages.size(), slices);
  sender.ready(key(1), complete(1));
  EXPECT_EQ(left.bulk_messages.size(), 2 * slices);
  EXPECT_EQ(sender.bytes_sent(), 2 * layout.values * sizeof(float));
}

TEST_F(ParameterSenderTest, PullsOfOneWorkerKeepTheirOrder) {
  sender.attach(ann, left);
  sender.add(ann, pull(ann, 1, nullptr));
  sender.add(ann, pull(ann, 2, complete(2)));
  EXPECT_TRUE(left.bulk_messages.empty());
  sender.ready(key(1), complete(1));
  EXPECT_EQ(steps(left), (std::vector<std::uint64_t>{1, 2}));
}

TEST_F(ParameterSenderTest, SlicesLeaveAsTheUpdateWritesThem) {
  sender.attach(ann, left);
  const SharedSnapshot snapshot = unwritten(1);
  sender.add(ann, pull(ann, 1, snapshot));
  EXPECT_TRUE(left.bulk_messages.empty());
  sender.written(snapshot, {SliceId{3}, SliceId{1}});
  EXPECT_EQ(left.bulk_messages.size(), 2U);
  std::vector<SliceId> rest;
  for (const SliceId id : layout.of(ServerId{0}))
    if (!snapshot->has(id)) rest.push_back(id);
  sender.written(snapshot, rest);
  EXPECT_EQ(left.bulk_messages.size(), 2 + slices_per_send) << "the others follow in later turns of the event loop";
  transport::run_ready(io);
  EXPECT_EQ(left.bulk_messages.size(), slices);
}

TEST_F(ParameterSenderTest, MemoryIsKeptUntilTheConnectionHasReadIt) {
  sender.attach(ann, left);
  std::weak_ptr<Snapshot> snapshot;
  {
    const SharedSnapshot made = complete(0);
    snapshot = made;
    sender.add(ann, pull(ann, 0, made));
  }
  for (std::size_t s = 0; s + 1 < slices; ++s) sender.sent(left.bulk_messages[s].ticket);
  EXPECT_FALSE(snapshot.expired());
  sender.sent(left.bulk_messages.back().ticket);
  EXPECT_TRUE(snapshot.expired());
}

TEST_F(ParameterSenderTest, ADetachedConnectionIsSentNothing) {
  sender.attach(ann, left);
  const SharedSnapshot snapshot = complete(0);
  sender.add(ann, pull(ann, 0, snapshot));
  sender.detach(left);
  EXPECT_EQ(snapshot.use_count(), 1) << "the connection reads no more";
  EXPECT_FALSE(sender.is_attached(left));
  sender.add(ann, pull(ann, 1, complete(1)));
  EXPECT_EQ(left.bulk_messages.size(), slices);
  sender.attach(ann, right);
  EXPECT_TRUE(sender.is_attached(right, ann));
  EXPECT_FALSE(sender.is_attached(right, bob));
  EXPECT_EQ(right.bulk_messages.size(), slices);
}

TEST_F(ParameterSenderTest, AWorkerWithTooManyPullsLosesThem) {
  for (std::uint64_t v = 0; v < most_waiting_pulls; ++v) {
    EXPECT_FALSE(sender.drop_excess(ann));
    sender.add(ann, pull(ann, v, complete(v)));
    sender.add(bob, pull(bob, v, nullptr));
  }
  EXPECT_TRUE(sender.drop_excess(ann));
  EXPECT_FALSE(sender.drop_excess(ann));
  sender.attach(ann, left);
  EXPECT_TRUE(left.bulk_messages.empty());
  EXPECT_TRUE(sender.drop_excess(bob)) << "the pulls of another worker stay";
}

}  // namespace
}  // namespace motley::runtime
