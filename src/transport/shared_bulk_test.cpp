// A shared-memory bulk lane against an authenticated peer that sends false frames. The rings are plain memory: only frames are tested.
#include "transport/shared_bulk.h"

#include <gtest/gtest.h>

#include <boost/asio/local/connect_pair.hpp>

#include "transport/invalid_memory_for_tests.h"
#include "transport/raw_client_for_tests.h"
#include "transport/shared_arena.h"
#include "transport/stream_connection.h"

namespace motley::transport {
namespace {

class PlainSegment final : public Segment {
 public:
  explicit PlainSegment(Memory& memory) : memory_(memory) {}
  std::span<std::byte> bytes() override { return memory_; }

 private:
  Memory& memory_;
};

class SharedBulkLane : public testing::Test {
 protected:
  using Local = asio::local::stream_protocol::socket;

  void SetUp() override {
    Local our_control(io), our_bulk(io), control(io), bulk(io);
    asio::local::connect_pair(our_control, control);
    asio::local::connect_pair(our_bulk, bulk);
    their_control = Stream(std::move(control));
    their_bulk = Stream(std::move(bulk));
    Rings rings{std::make_unique<PlainSegment>(our_ring), std::make_unique<PlainSegment>(their_ring)};
    auto lane = std::make_shared<SharedBulk>(Stream(std::move(our_bulk)), std::move(rings), options.largest_payload_bytes);
    ours = std::make_unique<StreamConnection>(Stream(std::move(our_control)), std::move(lane), options);
    ours->start(callbacks);
  }
  void expect_dropped(std::string_view because) {
    ASSERT_TRUE(run_until(io, [&] { return callbacks.ended(); }));
    EXPECT_NE(callbacks.ends[0].find(because), std::string::npos) << callbacks.ends[0];
    run_ready(io);
    EXPECT_EQ(callbacks.ends.size(), 1U);
    EXPECT_FALSE(callbacks.called_after_closed);
  }
  void reconnect() {
    ours.reset();
    callbacks.ends.clear();
    SetUp();
  }
  void offer(std::uint32_t segment, std::size_t bytes, int file) {
    wire::Bytes frames;
    append_offered(segment, bytes, frames);
    write_raw_with_file(their_bulk, frames, file);
  }
  [[nodiscard]] static wire::Bytes slice_of(const Memory& payload) {
    wire::Bytes frames;
    append_slice({.head = push_of(1), .payload = payload}, frames);
    return frames;
  }
  [[nodiscard]] static wire::Bytes slice_of_bytes(std::size_t bytes) { return slice_of(Memory(bytes)); }

  asio::io_context io{1};
  Options options{.linger = std::chrono::milliseconds(20)};
  Memory our_ring = Memory(1'000), their_ring = pattern(1'000, 1);
  Stream their_control{io}, their_bulk{io};
  RecordingCallbacks callbacks;
  std::unique_ptr<Connection> ours;
};

TEST_F(SharedBulkLane, Reads_and_acknowledges_a_slice_piece_by_piece) {
  Memory payload = their_ring;
  payload.insert(payload.end(), their_ring.begin(), their_ring.begin() + 500);
  wire::Bytes frames = slice_of(payload);
  append_written(900, frames);
  for (const std::byte b : frames) write_raw(their_bulk, {b}), run_ready(io);
  wire::Bytes took;
  append_taken(900, took);
  EXPECT_EQ(read_raw(io, their_bulk, took.size()), took);
  EXPECT_TRUE(callbacks.arrived.empty());

  wire::Bytes more;
  append_written(600, more);
  write_raw(their_bulk, more);
  ASSERT_TRUE(run_until(io, [&] { return callbacks.arrived.size() == 1; }));
  EXPECT_TRUE(callbacks.slices.at(1) == payload);
}

TEST_F(SharedBulkLane, Drops_a_peer_whose_payload_fails_its_checksum) {
  Memory announced(their_ring.begin(), their_ring.begin() + 900);
  announced[450] ^= std::byte{1};
  wire::Bytes frames = slice_of(announced);
  append_written(900, frames);
  write_raw(their_bulk, frames);
  expect_dropped("the payload of a Push of 900 bytes arrived damaged");
  EXPECT_TRUE(callbacks.arrived.empty());
}

TEST_F(SharedBulkLane, Sends_the_rest_when_the_ring_has_space) {
  wire::Bytes credit;
  append_credit(1 << 20, credit);
  write_raw(their_control, credit);
  const Memory payload = pattern(1'500, 7);
  ours->send(BulkMessage{push_of(7), payload, 0, 77});
  wire::Bytes reported;
  append_slice({.head = push_of(7), .payload = payload}, reported);
  append_written(1'000, reported);
  EXPECT_EQ(read_raw(io, their_bulk, reported.size()), reported);
  run_ready(io);
  EXPECT_TRUE(callbacks.tickets.empty());
  EXPECT_TRUE(our_ring == Memory(payload.begin(), payload.begin() + 1'000));

  wire::Bytes took, rest;
  append_taken(700, took);
  append_written(500, rest);
  write_raw(their_bulk, took);
  EXPECT_EQ(read_raw(io, their_bulk, rest.size()), rest);
  ASSERT_TRUE(run_until(io, [&] { return callbacks.tickets.size() == 1; }));
  EXPECT_TRUE(std::equal(payload.begin() + 1'000, payload.end(), our_ring.begin()));
}

TEST_F(SharedBulkLane, Drops_a_peer_that_acknowledges_unwritten_bytes) {
  wire::Bytes frames;
  append_taken(1, frames);
  write_raw(their_bulk, frames);
  expect_dropped("acknowledges 1 bytes that were not written");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_writes_without_a_slice) {
  wire::Bytes frames;
  append_written(10, frames);
  write_raw(their_bulk, frames);
  expect_dropped("10 written bytes that no slice expects");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_writes_more_than_the_slice) {
  wire::Bytes frames = slice_of_bytes(10);
  append_written(11, frames);
  write_raw(their_bulk, frames);
  expect_dropped("11 written bytes that no slice expects");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_writes_more_than_the_ring) {
  wire::Bytes frames = slice_of_bytes(5'000);
  append_written(1'001, frames);
  write_raw(their_bulk, frames);
  expect_dropped("or no ring holds");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_begins_a_slice_inside_another) {
  wire::Bytes frames = slice_of_bytes(10);
  const wire::Bytes another = slice_of_bytes(10);
  frames.insert(frames.end(), another.begin(), another.end());
  write_raw(their_bulk, frames);
  expect_dropped("in the middle of another");
}

TEST_F(SharedBulkLane, Drops_a_peer_whose_slice_is_in_no_mapped_segment) {
  const Memory payload(10);
  wire::Bytes frames;
  append_borrowed(3, 0, 0, {.head = push_of(1), .payload = payload}, frames);
  write_raw(their_bulk, frames);
  expect_dropped("10 bytes at 0 of segment 3, which this process has not mapped");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_offers_invalid_memory) {
  constexpr std::size_t bytes = 4 << 20;
  for (const Invalid& invalid : invalid_memory(bytes)) {
    SCOPED_TRACE(invalid.what);
    reconnect();
    offer(3, invalid.claimed_bytes, invalid.file.number());
    ASSERT_TRUE(run_until(io, [&] { return callbacks.ended(); }));
  }
}

TEST_F(SharedBulkLane, Drops_a_peer_that_offers_memory_without_descriptor) {
  wire::Bytes frames;
  append_offered(3, 1'000, frames);
  write_raw(their_bulk, frames);
  expect_dropped("offers memory without its descriptor");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_sends_unnamed_descriptors) {
  wire::Bytes frames = slice_of_bytes(10);
  frames.resize(1);
  for (int i = 0; i < 2; ++i)
    write_raw_with_file(their_bulk, {i == 0 ? frames[0] : std::byte{0}}, memory_sealed_by(F_SEAL_SHRINK, 1).number());
  expect_dropped("a descriptor that no frame names");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_offers_a_segment_twice) {
  for (int i = 0; i < 2; ++i) offer(3, 1'000, memory_sealed_by(F_SEAL_SHRINK, 1'000).number());
  expect_dropped("offers its segment 3 twice");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_offers_more_than_the_machine_has) {
  const std::size_t most = memory_of_this_machine();  // none of it is ever touched
  offer(3, most, memory_sealed_by(F_SEAL_SHRINK, most).number());
  run_ready(io);
  EXPECT_FALSE(callbacks.ended());
  offer(4, 4096, memory_sealed_by(F_SEAL_SHRINK, 4096).number());
  expect_dropped("more than this machine has");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_offers_our_own_memory) {
  shared_arena().want();
  auto* memory = static_cast<std::byte*>(shared_arena().take(1'000));
  ASSERT_NE(memory, nullptr);
  wire::Bytes credit;
  append_credit(1 << 20, credit);
  write_raw(their_control, credit);
  ours->send(BulkMessage{push_of(7), {memory, 1'000}, 0, 77, /*may_borrow=*/true});
  ASSERT_TRUE(run_until(io, [&] { return their_bulk.available() > 13; }));
  wire::Bytes offered(13);
  const Descriptor echoed = read_raw_with_file(their_bulk, offered);
  ASSERT_GE(echoed.number(), 0);
  offer(3, 1'000, echoed.number());
  expect_dropped("offers our own memory");
  shared_arena().give(memory);
}

TEST_F(SharedBulkLane, Drops_a_peer_that_returns_an_unknown_borrow) {
  wire::Bytes frames;
  append_returned(7, frames);
  write_raw(their_bulk, frames);
  expect_dropped("returns borrow 7, which was not given");
}

TEST_F(SharedBulkLane, Drops_a_peer_that_sends_noise) {
  wire::Bytes bytes = noise(10'000, 3);
  bytes[0] = std::byte{77};
  write_raw(their_bulk, bytes);
  expect_dropped("unknown tag 77");
}

TEST_F(SharedBulkLane, Ends_when_the_peer_ends_within_a_slice) {
  write_raw(their_bulk, slice_of_bytes(10));
  ASSERT_TRUE(run_until(io, [&] { return !callbacks.slices.empty(); }));
  close_quietly(their_bulk);
  expect_dropped("the bulk lane ended");
  EXPECT_TRUE(callbacks.arrived.empty());
}

}  // namespace
}  // namespace motley::transport
