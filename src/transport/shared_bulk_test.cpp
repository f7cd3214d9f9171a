// A shared bulk lane against a peer that was let in and then lies about what it laid or took. The memory is plain: only words are at stake.
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
    ours->start(ear);
  }
  void expect_dropped(std::string_view because) {
    ASSERT_TRUE(run_until(io, [&] { return ear.ended(); }));
    EXPECT_NE(ear.ends[0].find(because), std::string::npos) << ear.ends[0];
    run_ready(io);
    EXPECT_EQ(ear.ends.size(), 1U);
    EXPECT_FALSE(ear.spoken_to_after_the_end);
  }
  void once_more() {
    ours.reset();
    ear.ends.clear();
    SetUp();
  }
  void show(std::uint32_t segment, std::size_t bytes, int file) {
    wire::Bytes words;
    append_offered(segment, bytes, words);
    write_raw_with_file(their_bulk, words, file);
  }
  [[nodiscard]] static wire::Bytes slice_of(const Memory& payload) {
    wire::Bytes words;
    append_slice({.head = push_of(1), .payload = payload}, words);
    return words;
  }
  [[nodiscard]] static wire::Bytes slice_of_bytes(std::size_t bytes) { return slice_of(Memory(bytes)); }

  asio::io_context io{1};
  Options options{.linger = std::chrono::milliseconds(20)};
  Memory our_ring = Memory(1'000), their_ring = pattern(1'000, 1);
  Stream their_control{io}, their_bulk{io};
  RecordingCallbacks ear;
  std::unique_ptr<Connection> ours;
};

TEST_F(SharedBulkLane, TakesWhatIsLaidPieceByPieceAndSaysSo) {
  Memory round_and_round = their_ring;
  round_and_round.insert(round_and_round.end(), their_ring.begin(), their_ring.begin() + 500);
  wire::Bytes words = slice_of(round_and_round);
  append_written(900, words);
  for (const std::byte b : words) write_raw(their_bulk, {b}), run_ready(io);
  wire::Bytes took;
  append_taken(900, took);
  EXPECT_EQ(read_raw(io, their_bulk, took.size()), took);
  EXPECT_TRUE(ear.arrived.empty());

  wire::Bytes more;
  append_written(600, more);
  write_raw(their_bulk, more);
  ASSERT_TRUE(run_until(io, [&] { return ear.arrived.size() == 1; }));
  EXPECT_TRUE(ear.slices.at(1) == round_and_round);
}

TEST_F(SharedBulkLane, DropsAPeerWhoseBytesInTheRingAreNotThoseItSpokeOf) {
  Memory spoken_of(their_ring.begin(), their_ring.begin() + 900);
  spoken_of[450] ^= std::byte{1};
  wire::Bytes words = slice_of(spoken_of);
  append_written(900, words);
  write_raw(their_bulk, words);
  expect_dropped("the payload of a Push of 900 bytes arrived damaged");
  EXPECT_TRUE(ear.arrived.empty());
}

TEST_F(SharedBulkLane, WaitsForTheRingAndNoLonger) {
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
  EXPECT_TRUE(ear.tickets.empty());
  EXPECT_TRUE(our_ring == Memory(payload.begin(), payload.begin() + 1'000));

  wire::Bytes took, rest;
  append_taken(700, took);
  append_written(500, rest);
  write_raw(their_bulk, took);
  EXPECT_EQ(read_raw(io, their_bulk, rest.size()), rest);
  ASSERT_TRUE(run_until(io, [&] { return ear.tickets.size() == 1; }));
  EXPECT_TRUE(std::equal(payload.begin() + 1'000, payload.end(), our_ring.begin()));
}

TEST_F(SharedBulkLane, DropsAPeerThatTookMoreThanWasLaid) {
  wire::Bytes words;
  append_taken(1, words);
  write_raw(their_bulk, words);
  expect_dropped("1 bytes taken that were not laid");
}

TEST_F(SharedBulkLane, DropsAPeerThatLaysWithoutASlice) {
  wire::Bytes words;
  append_written(10, words);
  write_raw(their_bulk, words);
  expect_dropped("10 bytes laid that no slice needs");
}

TEST_F(SharedBulkLane, DropsAPeerThatLaysMoreThanTheSlice) {
  wire::Bytes words = slice_of_bytes(10);
  append_written(11, words);
  write_raw(their_bulk, words);
  expect_dropped("11 bytes laid that no slice needs");
}

TEST_F(SharedBulkLane, DropsAPeerThatLaysMoreThanTheRing) {
  wire::Bytes words = slice_of_bytes(5'000);
  append_written(1'001, words);
  write_raw(their_bulk, words);
  expect_dropped("or no ring holds");
}

TEST_F(SharedBulkLane, DropsAPeerThatBeginsASliceInsideAnother) {
  wire::Bytes words = slice_of_bytes(10);
  const wire::Bytes another = slice_of_bytes(10);
  words.insert(words.end(), another.begin(), another.end());
  write_raw(their_bulk, words);
  expect_dropped("in the middle of another");
}

TEST_F(SharedBulkLane, DropsAPeerThatLendsWhatItDoesNotShow) {
  const Memory payload(10);
  wire::Bytes words;
  append_borrowed(3, 0, 0, {.head = push_of(1), .payload = payload}, words);
  write_raw(their_bulk, words);
  expect_dropped("10 bytes at 0 of segment 3, which is not there");
}

TEST_F(SharedBulkLane, DropsAPeerThatShowsDubiousMemory) {
  constexpr std::size_t bytes = 4 << 20;
  for (const Invalid& invalid : invalid_memory(bytes)) {
    SCOPED_TRACE(invalid.what);
    once_more();
    show(3, invalid.claimed_bytes, invalid.file.number());
    ASSERT_TRUE(run_until(io, [&] { return ear.ended(); }));
  }
}

TEST_F(SharedBulkLane, DropsAPeerThatShowsMemoryAndDoesNotSendIt) {
  wire::Bytes words;
  append_offered(3, 1'000, words);
  write_raw(their_bulk, words);
  expect_dropped("shows memory and does not send it");
}

TEST_F(SharedBulkLane, DropsAPeerThatSendsDescriptorsThatNoWordNames) {
  wire::Bytes words = slice_of_bytes(10);
  words.resize(1);
  for (int i = 0; i < 2; ++i)
    write_raw_with_file(their_bulk, {i == 0 ? words[0] : std::byte{0}}, memory_sealed_by(F_SEAL_SHRINK, 1).number());
  expect_dropped("a descriptor that no word names");
}

TEST_F(SharedBulkLane, DropsAPeerThatShowsASegmentTwice) {
  for (int i = 0; i < 2; ++i) show(3, 1'000, memory_sealed_by(F_SEAL_SHRINK, 1'000).number());
  expect_dropped("shows its segment 3 twice");
}

TEST_F(SharedBulkLane, DropsAPeerThatShowsMoreThanTheMachineHas) {
  const std::size_t most = memory_of_this_machine();  // none of it is ever touched
  show(3, most, memory_sealed_by(F_SEAL_SHRINK, most).number());
  run_ready(io);
  EXPECT_FALSE(ear.ended());
  show(4, 4096, memory_sealed_by(F_SEAL_SHRINK, 4096).number());
  expect_dropped("more than this machine has");
}

TEST_F(SharedBulkLane, DropsAPeerThatLendsOurOwnMemory) {
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
  show(3, 1'000, echoed.number());
  expect_dropped("lends our own memory");
  shared_arena().give(memory);
}

TEST_F(SharedBulkLane, DropsAPeerThatReturnsWhatItWasNotLent) {
  wire::Bytes words;
  append_returned(7, words);
  write_raw(their_bulk, words);
  expect_dropped("returns loan 7, which was not given");
}

TEST_F(SharedBulkLane, DropsAPeerThatSendsNoise) {
  wire::Bytes bytes = noise(10'000, 3);
  bytes[0] = std::byte{77};
  write_raw(their_bulk, bytes);
  expect_dropped("unknown word 77");
}

TEST_F(SharedBulkLane, MissesAPeerThatEndsInMidSlice) {
  write_raw(their_bulk, slice_of_bytes(10));
  ASSERT_TRUE(run_until(io, [&] { return !ear.slices.empty(); }));
  close_quietly(their_bulk);
  expect_dropped("the bulk lane ended");
  EXPECT_TRUE(ear.arrived.empty());
}

}  // namespace
}  // namespace motley::transport
