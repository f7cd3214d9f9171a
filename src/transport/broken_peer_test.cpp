// A peer that was let in and then breaks the rules is dropped, by name, and nobody else notices.
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
  Options options{.linger = std::chrono::milliseconds(20)};  // a traitor does not answer a goodbye

  void expect_dropped(Traitor& traitor, std::string_view because) {
    ASSERT_TRUE(run_until(io, [&] { return traitor.ear.ended(); }));
    EXPECT_NE(traitor.ear.ends[0].find(because), std::string::npos) << traitor.ear.ends[0];
    run_ready(io);
    EXPECT_EQ(traitor.ear.ends.size(), 1U);
    EXPECT_FALSE(traitor.ear.spoken_to_after_the_end);
  }
};

wire::Bytes announcement(std::uint32_t length, std::uint32_t checksum = 0) {
  wire::Bytes bytes;
  wire::append(push_of(1), bytes);
  wire::Appender{bytes}.put(length, 4);
  wire::Appender{bytes}.put(checksum, 4);
  return bytes;
}

TEST_F(BrokenPeer, ThatSendsNoiseIsDropped) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Traitor on_control(io, options), on_bulk(io, options);
    wire::Bytes bytes = noise(10'000, seed);
    write_raw(on_bulk.bulk, bytes);
    expect_dropped(on_bulk, "a frame begins with");
    bytes[0] = std::byte{0};  // a message, or so it says
    write_raw(on_control.control, bytes);
    expect_dropped(on_control, "a frame begins with");
  }
}

TEST_F(BrokenPeer, WithAnUnknownTagIsDropped) {
  Traitor traitor(io, options);
  write_raw(traitor.control, {std::byte{77}});
  expect_dropped(traitor, "unknown tag 77");
}

TEST_F(BrokenPeer, ThatAnnounces4GiBIsDroppedBeforeAnythingIsAllocated) {
  Traitor traitor(io, options);
  write_raw(traitor.bulk, announcement(0xFFFF'FFFF));
  expect_dropped(traitor, "announces 4294967295 bytes");
  EXPECT_TRUE(traitor.ear.slices.empty());
}

TEST_F(BrokenPeer, ThatClaimsAHugeMessageIsDropped) {
  Traitor traitor(io, options);
  wire::Bytes bytes;
  append_message(wire::Stop{}, bytes);
  std::fill(bytes.begin() + 9, bytes.begin() + 13, std::byte{0xFF});  // the length of its body
  write_raw(traitor.control, bytes);
  expect_dropped(traitor, "claims a body of 4294967295 bytes");
}

TEST_F(BrokenPeer, ThatSendsAMessageOnTheBulkLaneIsDropped) {
  Traitor traitor(io, options);
  wire::Bytes bytes;
  wire::append(wire::Stop{}, bytes);
  wire::Appender{bytes}.put(0, 8);
  write_raw(traitor.bulk, bytes);
  expect_dropped(traitor, "carries a Stop");
}

TEST_F(BrokenPeer, ThatFlipsABitOfAHeadIsDropped) {
  Traitor traitor(io, options);
  wire::Bytes bytes = announcement(0);
  bytes[15] ^= std::byte{4};
  write_raw(traitor.bulk, bytes);
  expect_dropped(traitor, "arrived damaged");
}

/// Every bit of a payload counts; the sender is told why, and nothing is used.
TEST_F(BrokenPeer, ThatFlipsABitOfAPayloadIsDroppedAndTold) {
  for (const std::size_t bytes : {1U, 700U, 100'000U})
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      Traitor traitor(io, options);
      wire::Bytes payload = noise(bytes, 4);
      write_raw(traitor.bulk, announcement(static_cast<std::uint32_t>(bytes), crc32c(payload)));
      payload[at] ^= std::byte{16};
      write_raw(traitor.bulk, payload);
      expect_dropped(traitor, "the payload of a Push of " + std::to_string(bytes) + " bytes arrived damaged");
      EXPECT_TRUE(traitor.ear.arrived.empty());
      wire::Bytes recorded;
      append_goodbye(traitor.ear.ends[0], recorded);
      wire::Bytes credit;
      append_credit(options.window_bytes, credit);
      read_raw(io, traitor.control, credit.size());
      EXPECT_EQ(read_raw(io, traitor.control, recorded.size()), recorded);
    }
}

TEST_F(BrokenPeer, ThatSendsBeyondItsWindowIsDropped) {
  options.window_bytes = 1'000;
  Traitor traitor(io, options);
  traitor.door.pending_workers[0]->hold();
  for (int i = 0; i < 2; ++i) {
    const wire::Bytes payload = noise(600, 1);
    write_raw(traitor.bulk, announcement(600, crc32c(payload)));
    write_raw(traitor.bulk, payload);
  }
  expect_dropped(traitor, "beyond the window of 1000");
}

TEST_F(BrokenPeer, ThatGrantsWhatWasNotUnderWayIsDropped) {
  Traitor traitor(io, options);
  wire::Bytes bytes;
  append_credit(1'000, bytes);
  append_credit(1, bytes);
  write_raw(traitor.control, bytes);
  traitor.control.shutdown(Stream::shutdown_send);
  expect_dropped(traitor, "granted 1 bytes that were not under way");
}

TEST_F(BrokenPeer, ThatEndsInMidSliceIsMissed) {
  Traitor traitor(io, options);
  write_raw(traitor.bulk, announcement(1'000));
  write_raw(traitor.bulk, noise(999, 1));
  ASSERT_TRUE(run_until(io, [&] { return !traitor.ear.slices.empty(); }));
  close_quietly(traitor.bulk);
  expect_dropped(traitor, "the bulk lane ended");
  EXPECT_TRUE(traitor.ear.arrived.empty());
}

TEST_F(BrokenPeer, ThatEndsInMidMessageIsMissed) {
  Traitor traitor(io, options);
  wire::Bytes bytes;
  append_message(wire::Stop{}, bytes);
  bytes.pop_back();
  write_raw(traitor.control, bytes);
  close_quietly(traitor.control);
  expect_dropped(traitor, "the control lane ended");
  EXPECT_TRUE(traitor.ear.messages.empty());
}

TEST_F(BrokenPeer, HasItsLastWordMadeFitToPrint) {
  Traitor traitor(io, options);
  wire::Bytes bytes;
  append_goodbye("so\x1b[2J\nlong", bytes);
  write_raw(traitor.control, bytes);
  expect_dropped(traitor, "so?[2J?long");
}

TEST_F(BrokenPeer, ThatSendsOneByteAtATimeIsStillUnderstood) {
  Traitor traitor(io, options);
  const wire::Bytes payload = noise(50, 3);
  wire::Bytes control, bulk = announcement(50, crc32c(payload));
  append_message(wire::Heartbeat{.worker = {7}}, control);
  bulk.insert(bulk.end(), payload.begin(), payload.end());
  for (const std::byte b : control) write_raw(traitor.control, {b}), run_ready(io);
  for (const std::byte b : bulk) write_raw(traitor.bulk, {b}), run_ready(io);
  ASSERT_TRUE(run_until(io, [&] { return traitor.ear.messages.size() == 1 && traitor.ear.arrived.size() == 1; }));
  EXPECT_TRUE(traitor.ear.slices.at(1) == payload);
}

}  // namespace
}  // namespace motley::transport
