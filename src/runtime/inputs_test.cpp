#include "runtime/inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/chief_driver_for_tests.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

using protocol::ChiefDriver;
using protocol::ChiefEvent;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t batch = 12;
constexpr std::size_t closed_bytes = 9;  // of the record that ends a recording

protocol::ChiefOptions options() {
  return {.epoch_samples = 60, .total_samples = 600, .evaluate_every = 60, .max_time = {}, .quorum = 2, .checkpoint_every = 3};
}

protocol::Chief a_chief(const std::string& strategy = "bsp") {
  return ChiefDriver(options(), {.kind = strategy, .knobs = {}, .batches = {}}, batch).chief;
}

/// The recording of a training with every kind of message that a chief receives.
struct Recording {
  Bytes bytes;
  std::vector<std::size_t> begins;  // of each record
  std::vector<ChiefEvent> events;
  std::vector<Instant> times;

  explicit Recording(const std::string& strategy = "bsp") : driver_(options(), {.kind = strategy, .knobs = {}, .batches = {}}, batch) {
    step(protocol::Received{protocol::pending_worker(7), wire::Hello{.node = "nobody", .attempt = 1}});
    step(protocol::LostPending{7});
    step(protocol::Received{protocol::pending_worker(0), wire::Hello{.node = "a", .attempt = 1, .node_index = 0}});
    step(protocol::Received{protocol::pending_worker(1), wire::Hello{.node = "b", .attempt = 1, .node_index = 1}});
    for (int round = 0; round < 8; ++round) {
      finish_all();
      step(protocol::Tick{});
      if (round == 3) step(protocol::Lost{WorkerId{0}});
      if (round == 4)
        step(protocol::Received{protocol::pending_worker(2),
                                wire::Hello{.node = "c", .attempt = 1, .node_index = 2, .profile = {.max_batch = 5}}});
    }
    step(protocol::Interrupted{});
    recorder_.closed(driver_.now);
  }

 private:
  void step(const ChiefEvent& event) {
    driver_.now += from_seconds(0.25);
    driver_.step(event);
    begins.push_back(bytes.size());
    events.push_back(event);
    times.push_back(driver_.now);
    recorder_.stepped(driver_.now, event, driver_.last);
  }
  void finish_all() {
    const auto orders = driver_.orders;
    for (const auto& [worker, order] : orders) {
      driver_.orders.erase(worker);
      const auto samples = static_cast<std::uint32_t>(order.lease.size());
      step(protocol::Received{protocol::peer(worker), wire::Contributed{.worker = worker,
                                                                        .step = order.step,
                                                                        .base = order.version,
                                                                        .report = {.samples = samples,
                                                                                   .local_steps = order.local_steps,
                                                                                   .loss_sum = 3.5,
                                                                                   .squared_norm = 2,
                                                                                   .compute = from_seconds(0.1)}}});
      step(protocol::Received{protocol::peer(ServerId{0}), wire::Gathered{ServerId{0}, worker, order.step}});
    }
  }

  ChiefDriver driver_;
  Recorder recorder_{[this](std::span<const std::byte> record) { bytes.insert(bytes.end(), record.begin(), record.end()); }};
};

TEST(Inputs, ARecordedTrainingIsLivedAgain) {
  for (const std::string strategy : {"bsp", "asp", "ssp"}) {
    const Recording recording(strategy);
    protocol::Chief chief = a_chief(strategy);
    const auto replayed = replay(recording.bytes, chief);
    EXPECT_EQ(replayed.torn, "");
    EXPECT_EQ(replayed.inputs, recording.events.size());
    EXPECT_FALSE(replayed.first_difference.has_value()) << "at input " << *replayed.first_difference;
    EXPECT_TRUE(chief.finished());
  }
}

TEST(Inputs, NothingIsATornRecordingOfNothing) {
  protocol::Chief chief = a_chief();
  const auto replayed = replay({}, chief);
  EXPECT_EQ(replayed.inputs, 0U);
  EXPECT_NE(replayed.torn, "");
  EXPECT_FALSE(replayed.damaged);
}

TEST(Inputs, AnotherStrategyIsFoundAtTheFirstAnswerThatDiffers) {
  const Recording recording("bsp");
  protocol::Chief other = a_chief("asp");
  const auto replayed = replay(recording.bytes, other);
  ASSERT_EQ(replayed.torn, "");
  ASSERT_TRUE(replayed.first_difference.has_value());
  EXPECT_EQ(replayed.inputs, recording.events.size());
  protocol::Chief one = a_chief("bsp"), two = a_chief("asp");
  for (std::size_t n = 0; n <= *replayed.first_difference; ++n) {  // the same, side by side
    protocol::ChiefActions reported, instead;
    one.step(recording.times[n], recording.events[n], reported);
    two.step(recording.times[n], recording.events[n], instead);
    EXPECT_EQ(fingerprint(reported) == fingerprint(instead), n < *replayed.first_difference) << "input " << n;
  }
}

TEST(Inputs, AMissingInputIsFoundAtItsNumber) {
  const Recording recording;
  for (std::size_t n = 0; n < recording.events.size(); ++n) {
    const auto* received = std::get_if<protocol::Received>(&recording.events[n]);
    const auto* reported = received == nullptr ? nullptr : std::get_if<wire::Contributed>(&received->message);
    if (reported == nullptr) continue;
    // The same record with another base version, which the Completed that follows repeats. Its checksum fits.
    wire::Contributed lie = *reported;
    lie.base = reported->base.next();
    Bytes frame, old_frame, forged = recording.bytes;
    wire::append(lie, frame);
    wire::append(*reported, old_frame);
    ASSERT_EQ(frame.size(), old_frame.size());
    constexpr std::size_t before_frame = 1 + 8 + 1 + 4;
    std::copy(frame.begin(), frame.end(), forged.begin() + static_cast<std::ptrdiff_t>(recording.begins[n] + before_frame));
    protocol::Chief chief = a_chief();
    const auto replayed = replay(forged, chief);
    ASSERT_EQ(replayed.torn, "");
    ASSERT_TRUE(replayed.first_difference.has_value()) << "input " << n;
    EXPECT_EQ(*replayed.first_difference, n + 1) << "the Gathered that makes it complete";
  }
}

TEST(Inputs, AFlippedBitIsFoundAtItsNumberOrChangesNothing) {
  const Recording recording;
  for (std::size_t n = 0; n < recording.begins.size(); ++n) {
    const std::size_t end = n + 1 < recording.begins.size() ? recording.begins[n + 1] : recording.bytes.size() - closed_bytes;
    for (std::size_t at = recording.begins[n]; at < end; ++at) {
      Bytes flipped = recording.bytes;
      flipped[at] ^= std::byte{1} << (at % 8);
      protocol::Chief chief = a_chief();
      const auto replayed = replay(flipped, chief);
      const std::size_t place = at - recording.begins[n];
      const bool in_frame = std::holds_alternative<protocol::Received>(recording.events[n]) && place >= 14 && at + 8 < end;
      const bool in_answers = at + 8 >= end;
      if (in_frame) {
        ASSERT_NE(replayed.torn, "") << "input " << n << ", byte " << place;  // its checksum, or its length
      } else if (in_answers) {
        ASSERT_FALSE(replayed.damaged) << replayed.torn;
        EXPECT_EQ(replayed.first_difference, n) << "byte " << place;
      } else if (replayed.first_difference) {
        EXPECT_GE(*replayed.first_difference, n) << "byte " << place;  // kind, time, role or id: the answers tell, if they mattered
      }
    }
  }
}

TEST(Inputs, AFileCutAnywhereIsGoodAsFarAsItGoes) {
  const Recording recording;
  std::size_t whole = 0;
  for (std::size_t bytes = 0; bytes <= recording.bytes.size(); ++bytes) {
    while (whole < recording.begins.size() &&
           (whole + 1 < recording.begins.size() ? recording.begins[whole + 1] : recording.bytes.size() - closed_bytes) <= bytes)
      ++whole;
    protocol::Chief chief = a_chief();
    const Bytes cut(recording.bytes.begin(), recording.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));  // its own memory: no peeking
    const auto replayed = replay(cut, chief);
    EXPECT_FALSE(replayed.damaged) << bytes << " bytes: " << replayed.torn;
    EXPECT_EQ(replayed.inputs, whole) << bytes << " bytes";
    EXPECT_EQ(replayed.torn.empty(), bytes == recording.bytes.size()) << bytes << " bytes";
    EXPECT_FALSE(replayed.first_difference.has_value()) << bytes << " bytes";
  }
}

TEST(Inputs, WhatIsNoRecordTearsTheRecordingThere) {
  protocol::Chief chief = a_chief();
  EXPECT_TRUE(replay(Bytes(40, std::byte{5}), chief).damaged);
  EXPECT_TRUE(replay(Bytes(40, std::byte{255}), chief).damaged);
  Bytes wrong_role(40, std::byte{0});
  wrong_role[9] = std::byte{4};
  EXPECT_TRUE(replay(wrong_role, chief).damaged);

  const Recording recording;
  Bytes damaged = recording.bytes;
  damaged[recording.begins[5]] = std::byte{99};
  protocol::Chief again = a_chief();
  const Replayed replayed = replay(damaged, again);
  EXPECT_EQ(replayed.inputs, 5U) << "what comes before counts";
  EXPECT_FALSE(replayed.first_difference.has_value());
  EXPECT_EQ(replayed.torn, "input 5: found kind 99, expected 0 to 7");
}

TEST(Inputs, TheFingerprintSeesOrderAndEveryFact) {
  const protocol::ChiefAction idled = protocol::Idled{WorkerId{1}};
  const protocol::ChiefAction another = protocol::Idled{WorkerId{2}};
  EXPECT_EQ(fingerprint({idled, another}), fingerprint({idled, another}));
  EXPECT_NE(fingerprint({idled, another}), fingerprint({another, idled}));
  EXPECT_NE(fingerprint({idled}), fingerprint({idled, idled}));
  EXPECT_NE(fingerprint({}), fingerprint({idled}));
  EXPECT_NE(fingerprint({protocol::Held{{1}, policy::Why{}, 1}}), fingerprint({protocol::Held{{1}, policy::Why{}, 2}}));
}

}  // namespace
}  // namespace motley::runtime
