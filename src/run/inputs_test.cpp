#include "run/inputs.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "protocol/chief_hands_for_tests.h"
#include "wire/frame.h"

namespace motley::run {
namespace {

using protocol::ChiefEvent;
using protocol::ChiefHands;
using Bytes = std::vector<std::byte>;

constexpr std::uint32_t batch = 12;

protocol::ChiefOptions options() {
  return {.epoch_samples = 60, .total_samples = 600, .evaluate_every = 60, .max_time = {}, .quorum = 2, .checkpoint_every = 3};
}

protocol::Chief a_chief(const std::string& strategy = "bsp") {
  return ChiefHands(options(), {.kind = strategy, .knobs = {}, .batches = {}}, batch).chief;
}

/// A training with everything that a chief can hear, as it was recorded.
struct Recording {
  Bytes bytes;
  std::vector<std::size_t> begins;  // of each record
  std::vector<ChiefEvent> events;
  std::vector<Instant> times;

  explicit Recording(const std::string& strategy = "bsp") : hands_(options(), {.kind = strategy, .knobs = {}, .batches = {}}, batch) {
    step(protocol::Received{protocol::guest(7), wire::Hello{"nobody", 1}});
    step(protocol::LostGuest{7});
    step(protocol::Received{protocol::guest(0), wire::Hello{"a", 1, 0, 0}});
    step(protocol::Received{protocol::guest(1), wire::Hello{"b", 1, 0, 1}});
    for (int round = 0; round < 8; ++round) {
      finish_all();
      step(protocol::Tick{});
      if (round == 3) step(protocol::Lost{WorkerId{0}});
      if (round == 4) step(protocol::Received{protocol::guest(2), wire::Hello{"c", 1, 5, 2}});
    }
    step(protocol::Interrupted{});
  }

 private:
  void step(const ChiefEvent& event) {
    hands_.now += from_seconds(0.25);
    hands_.step(event);
    begins.push_back(bytes.size());
    events.push_back(event);
    times.push_back(hands_.now);
    recorder_.stepped(hands_.now, event, hands_.last);
  }
  void finish_all() {
    const auto orders = hands_.orders;
    for (const auto& [worker, order] : orders) {
      hands_.orders.erase(worker);
      const auto samples = static_cast<std::uint32_t>(order.lease.size());
      step(protocol::Received{protocol::peer(worker), wire::Contributed{worker, order.step, order.version, samples, order.local_steps, 3.5,
                                                                        2.0, true, from_seconds(0.1)}});
      step(protocol::Received{protocol::peer(ServerId{0}), wire::Gathered{ServerId{0}, worker, order.step}});
    }
  }

  ChiefHands hands_;
  Recorder recorder_{[this](std::span<const std::byte> record) { bytes.insert(bytes.end(), record.begin(), record.end()); }};
};

TEST(Inputs, ARecordedTrainingIsLivedAgain) {
  for (const std::string strategy : {"bsp", "asp", "ssp"}) {
    const Recording recording(strategy);
    protocol::Chief chief = a_chief(strategy);
    const auto replayed = replay(recording.bytes, chief);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    EXPECT_EQ(replayed->inputs, recording.events.size());
    EXPECT_FALSE(replayed->first_difference.has_value()) << "at input " << *replayed->first_difference;
    EXPECT_FALSE(replayed->cut_short);
    EXPECT_TRUE(chief.finished());
  }
}

TEST(Inputs, NothingIsAGoodRecording) {
  protocol::Chief chief = a_chief();
  const auto replayed = replay({}, chief);
  ASSERT_TRUE(replayed.ok());
  EXPECT_EQ(replayed->inputs, 0U);
  EXPECT_FALSE(replayed->cut_short);
}

TEST(Inputs, AnotherStrategyIsFoundAtTheFirstAnswerThatDiffers) {
  const Recording recording("bsp");
  protocol::Chief other = a_chief("asp");
  const auto replayed = replay(recording.bytes, other);
  ASSERT_TRUE(replayed.ok()) << replayed.error().message;
  ASSERT_TRUE(replayed->first_difference.has_value());
  EXPECT_EQ(replayed->inputs, recording.events.size());
  protocol::Chief one = a_chief("bsp"), two = a_chief("asp");
  for (std::size_t n = 0; n <= *replayed->first_difference; ++n) {  // the same, side by side
    protocol::ChiefActions said, instead;
    one.step(recording.times[n], recording.events[n], said);
    two.step(recording.times[n], recording.events[n], instead);
    EXPECT_EQ(fingerprint(said) == fingerprint(instead), n < *replayed->first_difference) << "input " << n;
  }
}

TEST(Inputs, AnInputThatWasNotHeardIsFoundAtItsNumber) {
  const Recording recording;
  for (std::size_t n = 0; n < recording.events.size(); ++n) {
    const auto* received = std::get_if<protocol::Received>(&recording.events[n]);
    const auto* said = received == nullptr ? nullptr : std::get_if<wire::Contributed>(&received->message);
    if (said == nullptr) continue;
    // The same record with another base version, which the Completed that follows repeats. Its checksum fits.
    wire::Contributed lie = *said;
    lie.base = said->base.next();
    Bytes frame, old_frame, forged = recording.bytes;
    wire::append(lie, frame);
    wire::append(*said, old_frame);
    ASSERT_EQ(frame.size(), old_frame.size());
    constexpr std::size_t before_frame = 1 + 8 + 1 + 4;
    std::copy(frame.begin(), frame.end(), forged.begin() + static_cast<std::ptrdiff_t>(recording.begins[n] + before_frame));
    protocol::Chief chief = a_chief();
    const auto replayed = replay(forged, chief);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message;
    ASSERT_TRUE(replayed->first_difference.has_value()) << "input " << n;
    EXPECT_EQ(*replayed->first_difference, n + 1) << "the Gathered that makes it complete";
  }
}

TEST(Inputs, AFlippedBitIsFoundAtItsNumberOrChangesNothing) {
  const Recording recording;
  for (std::size_t n = 0; n < recording.begins.size(); ++n) {
    const std::size_t end = n + 1 < recording.begins.size() ? recording.begins[n + 1] : recording.bytes.size();
    for (std::size_t at = recording.begins[n]; at < end; ++at) {
      Bytes flipped = recording.bytes;
      flipped[at] ^= std::byte{1} << (at % 8);
      protocol::Chief chief = a_chief();
      const auto replayed = replay(flipped, chief);
      const std::size_t place = at - recording.begins[n];
      const bool in_frame = std::holds_alternative<protocol::Received>(recording.events[n]) && place >= 14 && at + 8 < end;
      const bool in_answers = at + 8 >= end;
      if (in_frame) {
        ASSERT_FALSE(replayed.ok() && !replayed->cut_short) << "input " << n << ", byte " << place;  // its checksum, or its length
      } else if (in_answers) {
        ASSERT_TRUE(replayed.ok()) << replayed.error().message;
        EXPECT_EQ(replayed->first_difference, n) << "byte " << place;
      } else if (replayed.ok() && replayed->first_difference) {
        EXPECT_GE(*replayed->first_difference, n) << "byte " << place;  // kind, time, role or id: the answers tell, if they mattered
      }
    }
  }
}

TEST(Inputs, AFileCutAnywhereIsGoodAsFarAsItGoes) {
  const Recording recording;
  std::size_t whole = 0;
  for (std::size_t bytes = 0; bytes <= recording.bytes.size(); ++bytes) {
    while (whole < recording.begins.size() &&
           (whole + 1 < recording.begins.size() ? recording.begins[whole + 1] : recording.bytes.size()) <= bytes)
      ++whole;
    const bool between = whole == recording.begins.size() || recording.begins[whole] == bytes;
    protocol::Chief chief = a_chief();
    const Bytes cut(recording.bytes.begin(), recording.bytes.begin() + static_cast<std::ptrdiff_t>(bytes));  // its own memory: no peeking
    const auto replayed = replay(cut, chief);
    ASSERT_TRUE(replayed.ok()) << bytes << " bytes: " << replayed.error().message;
    EXPECT_EQ(replayed->inputs, whole) << bytes << " bytes";
    EXPECT_EQ(replayed->cut_short, !between) << bytes << " bytes";
    EXPECT_FALSE(replayed->first_difference.has_value()) << bytes << " bytes";
  }
}

TEST(Inputs, WhatIsNoRecordIsRefused) {
  protocol::Chief chief = a_chief();
  EXPECT_FALSE(replay(Bytes(40, std::byte{6}), chief).ok());
  EXPECT_FALSE(replay(Bytes(40, std::byte{255}), chief).ok());
  Bytes wrong_role(40, std::byte{0});
  wrong_role[9] = std::byte{4};
  EXPECT_FALSE(replay(wrong_role, chief).ok());
}

TEST(Inputs, TheFingerprintSeesOrderAndEveryFact) {
  const protocol::ChiefAction rested = protocol::Rested{WorkerId{1}};
  const protocol::ChiefAction another = protocol::Rested{WorkerId{2}};
  EXPECT_EQ(fingerprint({rested, another}), fingerprint({rested, another}));
  EXPECT_NE(fingerprint({rested, another}), fingerprint({another, rested}));
  EXPECT_NE(fingerprint({rested}), fingerprint({rested, rested}));
  EXPECT_NE(fingerprint({}), fingerprint({rested}));
  EXPECT_NE(fingerprint({protocol::Held{{1}, policy::Why{}, 1}}), fingerprint({protocol::Held{{1}, policy::Why{}, 2}}));
}

}  // namespace
}  // namespace motley::run
