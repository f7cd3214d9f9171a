// Records and their fingerprint: what is written is read again, and two runs are the same when their fingerprints are.
#include "trace/sinks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "base/rng.h"

namespace motley::trace {
namespace {

constexpr int kinds = static_cast<int>(Kind::repartition) + 1;

Event any_event(Rng& rng) {
  Event event;
  event.at = Instant{Duration{static_cast<std::int64_t>(rng.bits() >> 1)}};
  event.kind = static_cast<Kind>(rng.below(kinds));
  event.why = static_cast<std::uint8_t>(rng.bits());
  event.epoch = static_cast<std::uint32_t>(rng.bits());
  event.worker = {static_cast<std::uint32_t>(rng.bits())};
  event.step = {rng.bits()};
  event.version = {rng.bits()};
  event.first = rng.bits();
  event.last = rng.bits();
  event.value = rng.normal();
  event.second = rng.normal();
  return event;
}

TEST(Record, IsReadAsItWasWritten) {
  Rng rng(1, "records");
  std::array<std::byte, record_bytes> bytes{};
  for (int i = 0; i < 1000; ++i) {
    const Event event = any_event(rng);
    write_record(event, bytes);
    const auto read = read_record(bytes);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, event);
  }
}

TEST(Record, HasItsFieldsWhereTheFormatSays) {
  Event event;
  event.at = Instant{Duration{0x0807060504030201}};
  event.kind = Kind::counted;
  event.why = 7;
  event.second = 1.0;
  std::array<std::byte, record_bytes> bytes{};
  write_record(event, bytes);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[7], std::byte{8});
  EXPECT_EQ(bytes[8], std::byte{static_cast<std::uint8_t>(Kind::counted)});
  EXPECT_EQ(bytes[9], std::byte{7});
  EXPECT_EQ(bytes[65], std::byte{0x3f}) << "the last byte is the top of `second`";
}

TEST(Record, OfAnUnknownKindIsRefused) {
  std::array<std::byte, record_bytes> bytes{};
  write_record({}, bytes);
  bytes[8] = std::byte{kinds};
  const auto read = read_record(bytes);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.error().next, Next::tell_user);
  EXPECT_NE(read.error().message.find("kind " + std::to_string(kinds)), std::string::npos) << read.error().message;
}

std::string fingerprint(const std::vector<Event>& events) {
  Writer writer;
  for (const Event& event : events) writer.on_event(event);
  return writer.finish();
}

std::vector<Event> run(std::size_t length) {
  Rng rng(2, "run");
  std::vector<Event> events;
  for (std::size_t i = 0; i < length; ++i) events.push_back(any_event(rng));
  return events;
}

TEST(Writer, TheSameEventsHaveTheSameFingerprint) {
  EXPECT_EQ(fingerprint(run(5000)), fingerprint(run(5000)));
  EXPECT_EQ(fingerprint({}), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855") << "SHA-256 of nothing";
}

TEST(Writer, AnyDifferenceChangesTheFingerprint) {
  const std::string whole = fingerprint(run(3000));
  EXPECT_NE(fingerprint(run(2999)), whole);
  std::vector<Event> other = run(3000);
  other[1500].second = std::nextafter(other[1500].second, 2.0);
  EXPECT_NE(fingerprint(other), whole);
  other = run(3000);
  std::swap(other[10], other[11]);
  EXPECT_NE(fingerprint(other), whole);
}

TEST(Writer, HandsOnEveryRecordInOrder) {
  const std::vector<Event> events = run(2500);  // two whole blocks and a piece
  std::vector<std::byte> file;
  Writer writer([&](std::span<const std::byte> block) { file.insert(file.end(), block.begin(), block.end()); });
  for (const Event& event : events) writer.on_event(event);
  EXPECT_EQ(writer.finish(), fingerprint(events)) << "with a file or without";
  ASSERT_EQ(file.size(), events.size() * record_bytes);
  for (std::size_t i = 0; i < events.size(); ++i) {
    const auto read = read_record(std::span<const std::byte, record_bytes>(file.data() + i * record_bytes, record_bytes));
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, events[i]);
  }
}

TEST(Tee, TellsEachInOrder) {
  Recorder first;
  Recorder second;
  Silence nobody;
  Tee tee({&first, &nobody, &second});
  for (const Event& event : run(3)) tee.on_event(event);
  EXPECT_EQ(first.events(), run(3));
  EXPECT_EQ(second.events(), run(3));
}

TEST(Kind, EachHasItsOwnName) {
  std::set<std::string_view> names;
  for (int kind = 0; kind < kinds; ++kind) names.insert(name_of(static_cast<Kind>(kind)));
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kinds));
  EXPECT_EQ(name_of(Kind::joined), "joined");
  EXPECT_EQ(name_of(Kind::compute_ended), "compute_ended");
  EXPECT_EQ(name_of(Kind::finished), "finished");
}

}  // namespace
}  // namespace motley::trace
