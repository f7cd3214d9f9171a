// A model whose update takes several batches: slices are sent when they are written, not before, and once each.
#include <cstring>
#include <map>

#include "runtime/shard_host_for_tests.h"

namespace motley::runtime {
namespace {

constexpr std::size_t slice_values = std::size_t{1} << 18U;
constexpr std::size_t slices = 12;

/// Copies each slice when it is sent, like a peer that reads immediately.
class Reader final : public FakeConnection {
 public:
  struct Read {
    Step step;
    SliceId slice;
    std::vector<float> values;
  };
  std::vector<Read> read;

  using FakeConnection::send;
  void send(const transport::BulkMessage& bulk_message) override {
    const auto& pulled = std::get<wire::Pulled>(bulk_message.head);
    std::vector<float> values(bulk_message.payload.size() / sizeof(float));
    std::memcpy(values.data(), bulk_message.payload.data(), bulk_message.payload.size());
    read.push_back({pulled.step, pulled.slice, std::move(values)});
  }
};

class Streams : public testing::Test, private ShardOwner {
 protected:
  Streams() : host(io, ServerId{0}, layout, {}, {initial, std::nullopt, {}}, static_cast<ShardOwner&>(*this), 1) {
    for (std::size_t i = 0; i < layout.values; ++i) gradient[i] = static_cast<float>(i % 1009) * 0.01F - 5;
    host.attach({0}, ann);
    host.attach({1}, bob);
  }
  /// Pushes the same contribution from both workers.
  void push(std::uint64_t step) {
    for (const std::uint32_t worker : {0U, 1U})
      for (std::uint32_t s = 0; s < slices; ++s) {
        const wire::Push head{.worker = {worker}, .step = {step}, .slice = {s}, .bits = 32};
        const std::span<std::byte> room = host.receive_buffer(worker == 0 ? ann : bob, head, slice_values * sizeof(float));
        ASSERT_EQ(room.size(), slice_values * sizeof(float));
        std::memcpy(room.data(), gradient.data() + layout[{s}].offset, room.size());
        host.received(worker == 0 ? ann : bob, head);
      }
  }
  void update(std::uint64_t version) {
    host.receive(update_of(version, {{{0}, {version - 1}, 0.75}, {{1}, {version - 1}, 0.25}}));
    store.apply(by_hand(version), std::vector<store::WeightedPart>{{gradient, 0.75}, {gradient, 0.25}});
    expected[version].resize(layout.values);
    store.snapshot(0.9, expected[version]);
  }
  void expect_read(const Reader& reader, std::size_t from, std::uint64_t version) const {
    std::vector<bool> seen(slices);
    for (std::size_t i = from; i < from + slices; ++i) {
      const auto& [step, slice, values] = reader.read.at(i);
      EXPECT_EQ(step.value, version);
      EXPECT_FALSE(seen[slice.value]) << "twice: slice " << slice.value;
      seen[slice.value] = true;
      EXPECT_TRUE(
          std::equal(values.begin(), values.end(), expected.at(version).begin() + static_cast<std::ptrdiff_t>(layout[slice].offset)))
          << "slice " << slice.value << " of version " << version << " was not written";
    }
  }

  const std::vector<store::TensorPlace> tensors{{0, slices* slice_values, TensorKind::parameter}};
  store::Layout layout = store::cut(tensors, slice_values, 1);
  std::vector<float> initial = std::vector<float>(layout.values, 0.5F);
  std::vector<float> gradient = std::vector<float>(layout.values);
  store::ShardStore store{layout, ServerId{0}, {}, initial};
  std::map<std::uint64_t, std::vector<float>> expected;  // snapshots, by version
  boost::asio::io_context io;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work{io.get_executor()};
  Reader ann, bob;
  ShardHost host;

 private:
  void to_chief(const wire::Message&) override {}
  void exported(const std::shared_ptr<Exported>&) override {}
};

TEST_F(Streams, SlicesAreSentOnceAndNotBeforeTheyAreWritten) {
  push(0);
  push(1);
  update(1);
  host.receive(wire::Release{{0}, {1}, 0.9, 32});
  host.receive(wire::Release{{1}, {1}, 0.9, 32});
  EXPECT_TRUE(ann.read.empty()) << "no slice is written yet";
  update(2);  // the next pull is requested while the first is being sent
  host.receive(wire::Release{{0}, {2}, 0.9, 32});
  ASSERT_TRUE(run_until(io, [&] { return ann.read.size() >= 2 * slices && bob.read.size() >= slices; }));
  run_ready(io);
  EXPECT_EQ(ann.read.size(), 2 * slices);
  EXPECT_EQ(bob.read.size(), slices);
  expect_read(ann, 0, 1);
  expect_read(ann, slices, 2);
  expect_read(bob, 0, 1);
}

TEST_F(Streams, SpeculatedUpdatesSendTheSameSlices) {
  for (std::uint64_t version = 1; version <= 5; ++version) {
    push(version - 1);
    update(version);
    host.receive(wire::Release{{0}, {version}, 0.9, 32});
    ASSERT_TRUE(run_until(io, [&] { return ann.read.size() == version * slices; }));
    expect_read(ann, (version - 1) * slices, version);
  }
}

TEST_F(Streams, ADetachedWorkerDoesNotDelayOthers) {
  push(0);
  update(1);
  host.receive(wire::Release{{0}, {1}, 0.9, 32});
  host.receive(wire::Release{{1}, {1}, 0.9, 32});
  ASSERT_TRUE(run_until(io, [&] { return !ann.read.empty(); }));
  host.detach(ann);
  const std::size_t until_then = ann.read.size();
  ASSERT_TRUE(run_until(io, [&] { return bob.read.size() == slices; }));
  EXPECT_EQ(ann.read.size(), until_then);
  expect_read(bob, 0, 1);
}

}  // namespace
}  // namespace motley::runtime
