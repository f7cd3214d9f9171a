// Model files: written models are read back, the bytes follow the format, and damaged files are refused with a reason.
#include "store/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "base/check.h"
#include "base/rng.h"

namespace motley::store {
namespace {

/// Each test has its own folder.
class Safetensors : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string bytes() const {
    std::ifstream in(path, std::ios::binary);
    return (std::ostringstream() << in.rdbuf()).str();
  }
  void put(std::string_view content) const { std::ofstream(path, std::ios::binary) << content; }
  /// Writes a file with this header and number of data bytes.
  void put(std::string_view header, std::size_t data_bytes) const {
    std::string content(8, '\0');
    for (int i = 0; i < 8; ++i) content[static_cast<std::size_t>(i)] = static_cast<char>(header.size() >> (8 * i));
    put(content.append(header).append(data_bytes, '\0'));
  }
  void expect_refused(std::string_view because) const {
    const auto file = read_safetensors(path);
    ASSERT_FALSE(file.ok()) << "expected: " << because;
    EXPECT_EQ(file.error().next, Next::tell_user);
    EXPECT_NE(file.error().message.find(path.string()), std::string::npos) << file.error().message;
    EXPECT_NE(file.error().message.find(because), std::string::npos) << file.error().message;
  }

  std::filesystem::path folder = std::filesystem::temp_directory_path() / ("motley-safetensors-" + std::to_string(getpid()));
  std::filesystem::path path = folder / "model.safetensors";
};

const std::vector<NamedTensor> tensors{{"conv.weight", {2, 3}, 0}, {"empty", {0, 5}, 6}, {"scalar", {}, 6}, {"bias \"q\"", {3}, 7}};
const std::vector<float> values{0, 1, -2, 3.5F, 1e-45F, 3e38F, 7, 8, 9, 10};

TEST_F(Safetensors, ReadsBackAWrittenModel) {
  const Metadata metadata{{"version", "17"}, {"job", "4421-cheap"}};
  ASSERT_TRUE(write_safetensors(path, tensors, values, metadata).ok());
  const auto file = read_safetensors(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors, tensors);
  EXPECT_EQ(file->values, values);
  EXPECT_EQ(file->metadata, metadata);
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
}

TEST_F(Safetensors, PiecesAreWrittenLikeOneBuffer) {
  ASSERT_TRUE(write_safetensors(path, tensors, values, {}).ok());
  const std::string whole = bytes();
  const std::span<const float> all = values;
  const std::vector<std::span<const float>> pieces{all.first(4), {}, all.subspan(4)};
  ASSERT_TRUE(write_safetensors(path, tensors, pieces, {}).ok());
  EXPECT_EQ(bytes(), whole);
}

TEST_F(Safetensors, TheBytesFollowTheFormat) {
  ASSERT_TRUE(write_safetensors(path, std::vector<NamedTensor>{{"w", {1}, 0}}, std::vector<float>{1.0F}, {}).ok());
  const std::string header = R"({"__metadata__":{"sha256":")" + std::string(64, '0') +
                             R"("},"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})" + std::string(5, ' ');
  ASSERT_EQ(header.size() % 8, 0U);
  const std::string length{static_cast<char>(header.size()), 0, 0, 0, 0, 0, 0, 0}, one{0, 0, '\x80', '\x3f'};
  std::string found = bytes();
  const std::size_t checksum = found.find("sha256") + 9;
  ASSERT_NE(found.substr(checksum, 64), std::string(64, '0'));
  found.replace(checksum, 64, 64, '0');
  EXPECT_EQ(found, length + header + one);
}

TEST_F(Safetensors, ANewFileReplacesTheOldOne) {
  put("old");
  ASSERT_TRUE(write_safetensors(path, tensors, values, {}).ok());
  EXPECT_TRUE(read_safetensors(path).ok());
}

TEST_F(Safetensors, AMissingFolderIsAnErrorAndLeavesNothing) {
  const Outcome outcome = write_safetensors(folder / "none" / "model", tensors, values, {});
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().next, Next::give_up);
  EXPECT_NE(outcome.error().message.find("No such file or directory"), std::string::npos);
}

TEST_F(Safetensors, AFailedWriteKeepsTheOldFile) {
  std::filesystem::create_directories(path / "in the way");  // a folder cannot be replaced by a file
  EXPECT_FALSE(write_safetensors(path, tensors, values, {}).ok());
  EXPECT_TRUE(std::filesystem::exists(path / "in the way"));
  EXPECT_FALSE(std::filesystem::exists(path.string() + ".part"));
}

TEST_F(Safetensors, RejectsTensorsThatDoNotCoverTheValues) {
  EXPECT_THROW((void)write_safetensors(path, tensors, std::vector<float>(11), {}), Bug);
  EXPECT_THROW((void)write_safetensors(path, std::vector<NamedTensor>{{"a", {1}, 0}, {"a", {1}, 1}}, std::vector<float>(2), {}), Bug);
}

TEST_F(Safetensors, TensorsInAnyOrderAreReadByOffset) {
  put(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 12);
  const auto file = read_safetensors(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_EQ(file->tensors, (std::vector<NamedTensor>{{"a", {2}, 0}, {"b", {1}, 2}}));
}

TEST_F(Safetensors, NamesTheFaultOfAFile) {
  expect_refused("No such file or directory");
  put("abc");
  expect_refused("3 bytes are too few for a header");
  put(std::string(8, '\xff') + "{}");
  expect_refused("claims a header of 18446744073709551615 bytes in a file of 10");
  put("{", 0);
  expect_refused("the header is not JSON");
  put("[]", 0);
  expect_refused("not a JSON object");
  put("{}", 4);
  expect_refused("the tensors end at byte 0 of 4");
  put(R"({"__metadata__":{"a":1}})", 0);
  expect_refused("__metadata__: 'a' is not a text");
}

TEST_F(Safetensors, NamesTheFaultOfATensor) {
  const auto tensor = [&](std::string_view entry, std::string_view because) {
    put(std::string(R"({"w":)").append(entry) + "}", 8);
    expect_refused("tensor 'w': ");
    expect_refused(because);
  };
  tensor("7", "expected an object");
  tensor(R"({"shape":[2],"data_offsets":[0,8]})", "dtype missing");
  tensor(R"({"dtype":"F16","shape":[4],"data_offsets":[0,8]})", R"(dtype "F16", only "F32" is understood)");
  tensor(R"({"dtype":"F32","shape":[-2],"data_offsets":[0,8]})", "shape is not a list of whole numbers");
  tensor(R"({"dtype":"F32","shape":[2.5],"data_offsets":[0,8]})", "shape is not a list of whole numbers");
  tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0]})", "data_offsets is not a pair");
  tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[0,9]})", "lie outside the 8 bytes of data");
  tensor(R"({"dtype":"F32","shape":[2],"data_offsets":[8,0]})", "lie outside the 8 bytes of data");
  tensor(R"({"dtype":"F32","shape":[3],"data_offsets":[0,8]})", "shape [3] does not fill");
  tensor(R"({"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,8]})", "does not fill");
}

TEST_F(Safetensors, GapsAndOverlapsAreRefused) {
  put(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[8,12]}})", 12);
  expect_refused("tensor 'b' begins at byte 8 of the data, expected 4");
  put(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12);
  expect_refused("tensor 'b' begins at byte 4 of the data, expected 8");
}

TEST_F(Safetensors, RefusesTruncatedFiles) {
  ASSERT_TRUE(write_safetensors(path, tensors, values, {{"version", "17"}}).ok());
  const std::string whole = bytes();
  for (std::size_t size = 0; size < whole.size(); ++size) {
    put(whole.substr(0, size));
    ASSERT_FALSE(read_safetensors(path).ok()) << size << " of " << whole.size() << " bytes";
  }
}

TEST_F(Safetensors, TheChecksumFindsEveryFlippedBit) {
  ASSERT_TRUE(write_safetensors(path, tensors, values, {{"version", "17"}}).ok());
  const std::string whole = bytes();
  ASSERT_TRUE(read_safetensors(path)->checked);
  for (std::size_t bit = 0; bit < 8 * whole.size(); ++bit) {
    std::string flipped = whole;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1U << (bit % 8)));
    put(flipped);
    const auto file = read_safetensors(path);
    ASSERT_FALSE(file.ok() && file->checked) << "bit " << bit % 8 << " of byte " << bit / 8;
  }
}

TEST_F(Safetensors, ReadsAFileWithoutAChecksum) {
  put(R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  const auto file = read_safetensors(path);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_FALSE(file->checked);
}

TEST_F(Safetensors, DamageNeverCrashesTheReader) {
  ASSERT_TRUE(write_safetensors(path, tensors, values, {{"version", "17"}}).ok());
  const std::string whole = bytes();
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Rng rng(seed, "damage");
    std::string damaged = whole;
    for (std::uint64_t i = 0, n = 1 + rng.below(4); i < n; ++i) damaged[rng.below(damaged.size())] = static_cast<char>(rng.bits());
    put(damaged);
    const auto file = read_safetensors(path);
    if (file.ok()) {
      EXPECT_EQ(file->values.size(), values.size()) << "seed " << seed;
    }
  }
}

}  // namespace
}  // namespace motley::store
