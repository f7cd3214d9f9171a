// Trace records and files: written events are read again, and two runs are equal when their hashes are.
#include "trace/sinks.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <string>

#include "base/rng.h"
#include "trace/events_for_tests.h"
#include "trace/reading.h"
#include "trace/record.h"

namespace motley::trace {
namespace {

constexpr std::size_t kinds = std::variant_size_v<EventData>;

TEST(Record, IsReadAsItWasWritten) {
  Rng rng(1, "records");
  std::array<std::byte, record_bytes> bytes{};
  for (int i = 0; i < 1000; ++i) {
    const Event event = random_event(rng);
    write_record(event, bytes);
    const auto read = read_record(bytes);
    ASSERT_TRUE(read.ok());
    EXPECT_EQ(*read, event) << name_of(event.data);
  }
}

TEST(Record, HasItsFieldsInOrderOfDescription) {
  std::array<std::byte, record_bytes> bytes{};
  bytes.fill(std::byte{0xff});
  write_record({Instant{Duration{0x0807060504030201}}, Counted{.worker = {7}, .step = {9}, .weight = 1.0}}, bytes);
  EXPECT_EQ(bytes[0], std::byte{1});
  EXPECT_EQ(bytes[7], std::byte{8});
  EXPECT_EQ(bytes[8], std::byte{9}) << "the number of this kind";
  EXPECT_EQ(bytes[9], std::byte{7}) << "worker";
  EXPECT_EQ(bytes[13], std::byte{9}) << "step";
  EXPECT_EQ(bytes[52], std::byte{0x3f}) << "highest byte of weight";
  EXPECT_EQ(bytes[53], std::byte{0}) << "padding";
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

std::string hash_of(const std::vector<Event>& events) {
  Writer writer;
  for (const Event& event : events) writer.on_event(event);
  return writer.finish();
}

std::vector<std::byte> file_of(const std::vector<Event>& events) {
  std::vector<std::byte> file;
  Writer writer([&](std::span<const std::byte> block) { file.insert(file.end(), block.begin(), block.end()); });
  for (const Event& event : events) writer.on_event(event);
  EXPECT_EQ(writer.finish(), hash_of(events)) << "with a file or without";
  return file;
}

/// Random events with times and values that read_events() accepts.
std::vector<Event> random_run(std::size_t length) {
  Rng rng(2, "run");
  std::vector<Event> events;
  for (std::size_t i = 0; i < length; ++i) {
    Event& event = events.emplace_back(random_event(rng));
    event.at = at_seconds(static_cast<double>(i));
    if (auto* ended = std::get_if<ComputeEnded>(&event.data)) ended->stalled = from_seconds(1);
    if (auto* contribution = std::get_if<Contributed>(&event.data)) contribution->pull = from_seconds(2);
  }
  return events;
}

TEST(Writer, EqualEventsHaveEqualHashes) {
  EXPECT_EQ(hash_of(random_run(5000)), hash_of(random_run(5000)));
  EXPECT_EQ(hash_of({}), "f886f68763f1d861aebbf01844d349add47bed8a1f3d57c1cb31688c8a421dfc") << "SHA-256 of the header";
}

TEST(Writer, AnyDifferenceChangesTheHash) {
  const std::string whole = hash_of(random_run(3000));
  EXPECT_NE(hash_of(random_run(2999)), whole);
  std::vector<Event> other = random_run(3000);
  other[1500].at += Duration{1};
  EXPECT_NE(hash_of(other), whole);
  other = random_run(3000);
  std::swap(other[10], other[11]);
  EXPECT_NE(hash_of(other), whole);
}

TEST(Writer, WritesEveryEventInOrder) {
  const std::vector<Event> events = random_run(2500);  // two whole blocks and a part
  const std::vector<std::byte> file = file_of(events);
  EXPECT_EQ(file.size(), file_header.size() + events.size() * record_bytes);
  const auto read = read_events(file);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, events);
}

TEST(ReadEvents, StopsAtATornOrImpossibleRecord) {
  const std::vector<Event> events = random_run(10);
  std::vector<std::byte> torn = file_of(events);
  torn.pop_back();
  EXPECT_EQ(read_events(torn)->size(), 9U);
  for (const EventData& impossible : {EventData(Applied{.rate = 1e200}), EventData(ComputeEnded{.stalled = Duration::max()})}) {
    std::vector<Event> other = events;
    other[4].data = impossible;
    EXPECT_EQ(read_events(file_of(other))->size(), 4U) << name_of(impossible);
  }
  torn.resize(file_header.size() / 2);
  EXPECT_EQ(read_events(torn)->size(), 0U);
}

TEST(ReadEvents, RefusesAFileWithoutTheHeader) {
  const std::vector<std::byte> file = file_of(random_run(10));
  const auto version_1 = read_events(std::span(file).subspan(file_header.size()));
  ASSERT_FALSE(version_1.ok());
  EXPECT_NE(version_1.error().message.find("motley trace v2"), std::string::npos) << version_1.error().message;
}

TEST(Tee, PassesEventsToEachInOrder) {
  Recorder first;
  Recorder second;
  Tee tee({&first, &second});
  for (const Event& event : random_run(3)) tee.on_event(event);
  EXPECT_EQ(first.events(), random_run(3));
  EXPECT_EQ(second.events(), random_run(3));
}

TEST(EventData, EachKindHasItsOwnName) {
  std::set<std::string_view> names;
  for (const EventData& data : one_of_each()) names.insert(name_of(data));
  EXPECT_EQ(names.size(), kinds);
  EXPECT_EQ(name_of(Joined{}), "joined");
  EXPECT_EQ(name_of(ComputeEnded{}), "compute_ended");
  EXPECT_EQ(name_of(Finished{}), "finished");
}

TEST(EventData, IsAboutAWorkerOrAStageOrNeither) {
  EXPECT_EQ(worker_of(Held{.worker = {3}}), WorkerId{3});
  EXPECT_EQ(worker_of(PartBegan{.stage = {4}}), WorkerId{4});
  EXPECT_EQ(worker_of(Applied{}), std::nullopt);
}

}  // namespace
}  // namespace motley::trace
