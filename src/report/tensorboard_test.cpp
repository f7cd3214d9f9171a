// The event file read back by a reader of its own: framing, checksums (bit by bit, checked against published vectors), fields, scalars.
#include "report/tensorboard.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/check.h"

namespace motley::report {
namespace {

namespace fs = std::filesystem;

/// CRC-32C as RFC 3720 has it, one bit after the other.
std::uint32_t crc32c(std::string_view bytes) {
  std::uint32_t crc = 0xFFFFFFFFU;
  for (const char c : bytes) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1U) != 0 ? crc >> 1U ^ 0x82F63B78U : crc >> 1U;
  }
  return ~crc;
}

std::uint32_t masked(std::uint32_t crc) { return (crc >> 15U | crc << 17U) + 0xA282EAD8U; }

/// Reads numbers and pieces from the front; a test fails where there is too little.
struct Bytes {
  std::string_view left;
  std::string_view take(std::size_t n) {
    EXPECT_LE(n, left.size());
    n = std::min(n, left.size());
    const std::string_view taken = left.substr(0, n);
    left.remove_prefix(n);
    return taken;
  }
  template <class T>
  T number() {
    T value{};
    const std::string_view bytes = take(sizeof value);
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 70 && !left.empty(); shift += 7) {
      const auto byte = number<std::uint8_t>();
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
};

/// A protobuf message: what each field holds, numbers as their bytes.
std::map<std::uint64_t, std::string> fields(std::string_view message) {
  std::map<std::uint64_t, std::string> found;
  for (Bytes in{message}; !in.left.empty();) {
    const std::uint64_t key = in.varint();
    std::string value;
    switch (key & 7U) {
      case 0: {
        const std::uint64_t number = in.varint();
        value.assign(reinterpret_cast<const char*>(&number), sizeof number);
        break;
      }
      case 1: value = in.take(8); break;
      case 2: value = in.take(in.varint()); break;
      case 5: value = in.take(4); break;
      default: ADD_FAILURE() << "wire type " << (key & 7U); return found;
    }
    EXPECT_TRUE(found.emplace(key >> 3U, value).second) << "field " << (key >> 3U) << " twice";
  }
  return found;
}

template <class T>
T as(const std::string& bytes) {
  return Bytes{bytes}.number<T>();
}

struct ReadEvent {
  double wall_time_s{};
  std::uint64_t step{};
  std::string file_version;
  std::string tag;
  std::optional<float> value;
};

std::vector<ReadEvent> events_of(const std::string& file) {
  std::vector<ReadEvent> events;
  for (Bytes in{file}; !in.left.empty() && !testing::Test::HasFailure();) {
    const std::string_view head = in.left.substr(0, 8);
    const auto length = in.number<std::uint64_t>();
    EXPECT_EQ(in.number<std::uint32_t>(), masked(crc32c(head))) << "of the length";
    const std::string_view data = in.take(length);
    EXPECT_EQ(in.number<std::uint32_t>(), masked(crc32c(data))) << "of the data";
    auto event = fields(data);
    ReadEvent read;
    read.wall_time_s = as<double>(event[1]);
    if (event.contains(2)) read.step = as<std::uint64_t>(event[2]);
    read.file_version = event[3];
    if (event.contains(5)) {
      auto value = fields(fields(event[5])[1]);
      read.tag = value[1];
      read.value = as<float>(value[2]);
    }
    events.push_back(read);
  }
  return events;
}

/// A folder of its own: tests run side by side.
class TensorBoardFile : public testing::Test {
 protected:
  fs::path folder = fs::path(testing::TempDir()) / ("motley_tensorboard_test_" + std::to_string(getpid()));
  void TearDown() override { fs::remove_all(folder); }

  EventFile opened() {
    auto file = EventFile::open(folder, 1'700'000'000.75, "host");
    EXPECT_TRUE(file.ok());
    return std::move(*file);
  }
  static std::string content(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
};

TEST(Crc32c, OfTheTestsReaderIsThePublishedOne) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAU);  // RFC 3720, B.4
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43U);
}

TEST_F(TensorBoardFile, BeginsAsEveryEventFileDoes) {
  EventFile file = opened();
  ASSERT_TRUE(file.close().ok());
  EXPECT_EQ(file.path().filename().string(), "events.out.tfevents.1700000000.host");
  const std::string bytes = content(file.path());
  // A first record of 24 bytes and the masked checksum of that length, as TensorFlow's own files have it.
  EXPECT_EQ(bytes.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  const auto events = events_of(bytes);
  ASSERT_EQ(events.size(), 1U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time_s, 1'700'000'000.75);
}

TEST_F(TensorBoardFile, ScalarsAreReadBackAsTheyWereGiven) {
  EventFile file = opened();
  const std::string long_tag(300, 't');  // its length takes two bytes
  file.scalar("loss", 0, 1.5, 2.25);
  file.scalar(long_tag, 127, 2, -0.5);
  file.scalar("loss", 128, 3, 1e-3);
  file.scalar("loss", (std::uint64_t{1} << 63U) - 1, 4, std::numeric_limits<double>::quiet_NaN());
  ASSERT_TRUE(file.close().ok());
  const auto events = events_of(content(file.path()));
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[1].tag, "loss");
  EXPECT_EQ(events[1].step, 0U);
  EXPECT_EQ(events[1].wall_time_s, 1.5);
  EXPECT_EQ(events[1].value, 2.25F);
  EXPECT_EQ(events[2].tag, long_tag);
  EXPECT_EQ(events[2].step, 127U);
  EXPECT_EQ(events[2].value, -0.5F);
  EXPECT_EQ(events[3].step, 128U);
  EXPECT_EQ(events[3].value, 1e-3F);
  EXPECT_EQ(events[4].step, (std::uint64_t{1} << 63U) - 1);
  EXPECT_TRUE(events[4].value.has_value() && *events[4].value != *events[4].value);
}

TEST_F(TensorBoardFile, CanBeFollowedWhileItGrows) {
  EventFile file = opened();
  file.scalar("loss", 1, 1, 1);
  EXPECT_EQ(events_of(content(file.path())).size(), 2U) << "before it is closed";
}

TEST_F(TensorBoardFile, OfTheSameSecondIsAddedTo) {
  for (int i = 0; i < 2; ++i) {
    EventFile file = opened();
    file.scalar("loss", 1, 1, i);
    ASSERT_TRUE(file.close().ok());
  }
  EXPECT_EQ(events_of(content(folder / "events.out.tfevents.1700000000.host")).size(), 4U);
}

TEST_F(TensorBoardFile, TheFolderIsMadeAndAHostStaysInsideIt) {
  auto file = EventFile::open(folder / "a" / "b", 5, "../x y/\xc3\xa4");
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(file->path(), folder / "a" / "b" / "events.out.tfevents.0000000005..._x_y___");
  EXPECT_TRUE(fs::exists(file->path()));
}

TEST_F(TensorBoardFile, WhereItMayNotBeWrittenTheReasonIsTold) {
  fs::create_directories(folder);
  std::ofstream(folder / "file") << "in the way";
  const auto file = EventFile::open(folder / "file", 5, "host");
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.error().next, Next::give_up);
  EXPECT_NE(file.error().message.find((folder / "file").string()), std::string::npos) << file.error().message;
}

TEST_F(TensorBoardFile, NothingIsAddedAfterItsEnd) {
  EventFile file = opened();
  ASSERT_TRUE(file.close().ok());
  EXPECT_THROW(file.scalar("loss", 1, 1, 1), Bug);
}

trace::Event evaluated(double at_s, std::uint64_t samples, double accuracy, double loss) {
  return {at_seconds(at_s), trace::Evaluated{.samples = samples, .accuracy = accuracy, .loss = loss}};
}

TEST_F(TensorBoardFile, EvaluationsBecomeAccuracyLossAndThroughputBySamples) {
  EventFile file = opened();
  TensorBoard board(file, 1000);
  board.on_event(evaluated(0, 0, 0.125, 2.5));
  board.on_event({at_seconds(1), trace::Applied{.parts = 4}});
  board.on_event(evaluated(4, 2000, 0.5, 1.5));
  board.on_event(evaluated(6, 5000, 0.75, 0.5));
  ASSERT_TRUE(file.close().ok());
  std::vector<std::string> read;
  for (const ReadEvent& event : events_of(content(file.path())))
    if (event.value)
      read.push_back(event.tag + " " + std::to_string(event.step) + " " + std::to_string(event.wall_time_s) + " " +
                     std::to_string(*event.value));
  EXPECT_EQ(read, (std::vector<std::string>{
                      "accuracy 0 1000.000000 0.125000",
                      "loss 0 1000.000000 2.500000",  // and no throughput: no time has passed
                      "accuracy 2000 1004.000000 0.500000",
                      "loss 2000 1004.000000 1.500000",
                      "throughput 2000 1004.000000 500.000000",
                      "accuracy 5000 1006.000000 0.750000",
                      "loss 5000 1006.000000 0.500000",
                      "throughput 5000 1006.000000 1500.000000",
                  }));
}

}  // namespace
}  // namespace motley::report
