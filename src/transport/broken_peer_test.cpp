// An authenticated peer that breaks the protocol is dropped with a reason, without effect on other connections.
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "transport/bulk_frame.h"
#include "transport/control_frame.h"
#include "transport/raw_client_for_tests.h"
#include "wire/encode.h"

namespace motley::transport {
namespace {

class BrokenPeer : public testing::Test {
 protected:
  asio::io_context io{1};
  Options options{.linger = std::chrono::milliseconds(20)};  // a broken peer does not answer a goodbye

  void expect_dropped(RawPeer& raw_peer, std::string_view because) {
    ASSERT_TRUE(run_until(io, [&] { return raw_peer.callbacks.ended(); }));
    EXPECT_NE(raw_peer.callbacks.ends[0].find(because), std::string::npos) << raw_peer.callbacks.ends[0];
    run_ready(io);
    EXPECT_EQ(raw_peer.callbacks.ends.size(), 1U);
    EXPECT_FALSE(raw_peer.callbacks.called_after_closed);
  }
};

wire::Bytes announcement(std::uint32_t length, std::uint32_t checksum = 0) {
  wire::Bytes bytes;
  wire::append(push_of(1), bytes);
  wire::Appender{bytes}.put(length, 4);
  wire::Appender{bytes}.put(checksum, 4);
  return bytes;
}

TEST_F(BrokenPeer, Is_dropped_when_it_sends_noise) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    RawPeer on_control(io, options), on_bulk(io, options);
    wire::Bytes bytes = noise(10'000, seed);
    write_raw(on_bulk.bulk, bytes);
    expect_dropped(on_bulk, "a frame begins with");
    bytes[0] = std::byte{0};  // the tag of a message
    write_raw(on_control.control, bytes);
    expect_dropped(on_control, "a frame begins with");
  }
}

TEST_F(BrokenPeer, Is_dropped_when_it_sends_an_unknown_tag) {
  RawPeer raw_peer(io, options);
  write_raw(raw_peer.control, {std::byte{77}});
  expect_dropped(raw_peer, "unknown tag 77");
}

TEST_F(BrokenPeer, Is_dropped_before_allocation_when_it_announces_4_GiB) {
  RawPeer raw_peer(io, options);
  write_raw(raw_peer.bulk, announcement(0xFFFF'FFFF));
  expect_dropped(raw_peer, "announces 4294967295 bytes");
  EXPECT_TRUE(raw_peer.callbacks.slices.empty());
}

TEST_F(BrokenPeer, Is_dropped_when_it_claims_a_huge_message) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes;
  append_message(wire::Stop{}, bytes);
  std::fill(bytes.begin() + 9, bytes.begin() + 13, std::byte{0xFF});  // the length of the body
  write_raw(raw_peer.control, bytes);
  expect_dropped(raw_peer, "claims a body of 4294967295 bytes");
}

TEST_F(BrokenPeer, Is_dropped_when_it_sends_a_message_on_the_bulk_lane) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes;
  wire::append(wire::Stop{}, bytes);
  wire::Appender{bytes}.put(0, 8);
  write_raw(raw_peer.bulk, bytes);
  expect_dropped(raw_peer, "carries a Stop");
}

TEST_F(BrokenPeer, Is_dropped_when_a_bit_of_a_head_is_flipped) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes = announcement(0);
  bytes[15] ^= std::byte{4};
  write_raw(raw_peer.bulk, bytes);
  expect_dropped(raw_peer, "arrived damaged");
}

/// Every bit of a payload is covered; the sender receives the reason, and the payload is not used.
TEST_F(BrokenPeer, Is_dropped_when_a_bit_of_a_payload_is_flipped) {
  for (const std::size_t bytes : {1U, 700U, 100'000U})
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      RawPeer raw_peer(io, options);
      wire::Bytes payload = noise(bytes, 4);
      write_raw(raw_peer.bulk, announcement(static_cast<std::uint32_t>(bytes), crc32c(payload)));
      payload[at] ^= std::byte{16};
      write_raw(raw_peer.bulk, payload);
      expect_dropped(raw_peer, "the payload of a Push of " + std::to_string(bytes) + " bytes arrived damaged");
      EXPECT_TRUE(raw_peer.callbacks.arrived.empty());
      wire::Bytes recorded;
      append_goodbye(raw_peer.callbacks.ends[0], recorded);
      wire::Bytes credit;
      append_credit(options.window_bytes, credit);
      read_raw(io, raw_peer.control, credit.size());
      EXPECT_EQ(read_raw(io, raw_peer.control, recorded.size()), recorded);
    }
}

TEST_F(BrokenPeer, Is_dropped_when_it_sends_beyond_its_window) {
  options.window_bytes = 1'000;
  RawPeer raw_peer(io, options);
  raw_peer.incoming.connections[0]->hold();
  for (int i = 0; i < 2; ++i) {
    const wire::Bytes payload = noise(600, 1);
    write_raw(raw_peer.bulk, announcement(600, crc32c(payload)));
    write_raw(raw_peer.bulk, payload);
  }
  expect_dropped(raw_peer, "beyond the window of 1000");
}

TEST_F(BrokenPeer, Is_dropped_when_it_grants_bytes_that_are_not_in_flight) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes;
  append_credit(1'000, bytes);
  append_credit(1, bytes);
  write_raw(raw_peer.control, bytes);
  raw_peer.control.shutdown(Stream::shutdown_send);
  expect_dropped(raw_peer, "granted 1 bytes that were not in flight");
}

TEST_F(BrokenPeer, Is_lost_when_it_ends_within_a_slice) {
  RawPeer raw_peer(io, options);
  write_raw(raw_peer.bulk, announcement(1'000));
  write_raw(raw_peer.bulk, noise(999, 1));
  ASSERT_TRUE(run_until(io, [&] { return !raw_peer.callbacks.slices.empty(); }));
  close_quietly(raw_peer.bulk);
  expect_dropped(raw_peer, "the bulk lane ended");
  EXPECT_TRUE(raw_peer.callbacks.arrived.empty());
}

TEST_F(BrokenPeer, Is_lost_when_it_ends_within_a_message) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes;
  append_message(wire::Stop{}, bytes);
  bytes.pop_back();
  write_raw(raw_peer.control, bytes);
  close_quietly(raw_peer.control);
  expect_dropped(raw_peer, "the control lane ended");
  EXPECT_TRUE(raw_peer.callbacks.messages.empty());
}

TEST_F(BrokenPeer, Has_control_characters_removed_from_its_goodbye) {
  RawPeer raw_peer(io, options);
  wire::Bytes bytes;
  append_goodbye("so\x1b[2J\nlong", bytes);
  write_raw(raw_peer.control, bytes);
  expect_dropped(raw_peer, "so?[2J?long");
}

TEST_F(BrokenPeer, May_send_one_byte_at_a_time) {
  RawPeer raw_peer(io, options);
  const wire::Bytes payload = noise(50, 3);
  wire::Bytes control, bulk = announcement(50, crc32c(payload));
  append_message(wire::Heartbeat{.worker = {7}}, control);
  bulk.insert(bulk.end(), payload.begin(), payload.end());
  for (const std::byte b : control) write_raw(raw_peer.control, {b}), run_ready(io);
  for (const std::byte b : bulk) write_raw(raw_peer.bulk, {b}), run_ready(io);
  ASSERT_TRUE(run_until(io, [&] { return raw_peer.callbacks.messages.size() == 1 && raw_peer.callbacks.arrived.size() == 1; }));
  EXPECT_TRUE(raw_peer.callbacks.slices.at(1) == payload);
}

}  // namespace
}  // namespace motley::transport
