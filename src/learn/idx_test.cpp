// idx files: read plain or gzip; each kind of damage is refused by name.
#include "learn/idx.h"

#include <functional>

#include "learn/test_files.h"

namespace motley::learn {
namespace {

constexpr std::string_view remedy = "apt-get install some-package";

void append_word(Bytes& bytes, std::uint32_t word) {
  for (const int shift : {24, 16, 8, 0}) bytes.push_back(static_cast<std::uint8_t>(word >> shift));
}

/// Pixel p of picture i is 10 i + p.
Bytes images(std::uint32_t count, std::uint32_t rows = 2, std::uint32_t columns = 3) {
  Bytes bytes;
  for (const std::uint32_t word : {0x0803U, count, rows, columns}) append_word(bytes, word);
  for (std::uint32_t i = 0; i < count; ++i)
    for (std::uint32_t p = 0; p < rows * columns; ++p) bytes.push_back(static_cast<std::uint8_t>(10 * i + p));
  return bytes;
}

Bytes labels(std::uint32_t count, std::uint8_t label = 3) {
  Bytes bytes;
  append_word(bytes, 0x0801);
  append_word(bytes, count);
  bytes.insert(bytes.end(), count, label);
  return bytes;
}

void write_good_files(const Folder& folder) {
  folder.pack("train-images-idx3-ubyte.gz", images(20));
  folder.pack("train-labels-idx1-ubyte.gz", labels(20));
  folder.write("t10k-images-idx3-ubyte", images(4));
  folder.write("t10k-labels-idx1-ubyte", labels(4, 9));
}

TEST(Idx, Plain_and_gzip_files_read_alike) {
  const Folder folder;
  write_good_files(folder);
  const auto loaded = load_idx(folder.path(), remedy, EvaluateOn::test);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->training().labels, Bytes(20, 3));
  EXPECT_EQ(loaded->evaluation().labels, Bytes(4, 9));
  EXPECT_EQ(loaded->evaluation().pixels[7], 11);
  EXPECT_EQ(loaded->format().height, 2);
  EXPECT_EQ(loaded->format().width, 3);
}

TEST(Idx, Validation_is_the_last_tenth_and_reads_no_test_files) {
  const Folder folder;
  write_good_files(folder);
  folder.remove("t10k-images-idx3-ubyte");
  const auto loaded = load_idx(folder.path(), remedy, EvaluateOn::validation);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->training().labels.size(), 18U);
  ASSERT_EQ(loaded->evaluation().labels.size(), 2U);
  EXPECT_EQ(loaded->evaluation().pixels[0], 180);
}

struct Damage {
  std::string name;
  std::function<void(const Folder&)> apply;
  std::string file;
  std::string found;
  std::string expected;
};

void PrintTo(const Damage& damage, std::ostream* out) { *out << damage.name; }

class DamagedIdx : public testing::TestWithParam<Damage> {};

TEST_P(DamagedIdx, Refused_with_file_finding_expectation_and_remedy) {
  const Folder folder;
  write_good_files(folder);
  GetParam().apply(folder);
  expect_refused(load_idx(folder.path(), remedy, EvaluateOn::test),
                 {(folder.path() / GetParam().file).string(), GetParam().found, GetParam().expected, remedy});
}

const Damage damages[] = {
    {"Absent", [](const Folder& f) { f.remove("train-labels-idx1-ubyte.gz"); }, "train-labels-idx1-ubyte", "no such file",
     "idx file of labels"},
    {"CutGzip", [](const Folder& f) { f.cut("train-images-idx3-ubyte.gz", 60); }, "train-images-idx3-ubyte.gz", "cut short", "images"},
    {"CutPlain", [](const Folder& f) { f.cut("t10k-images-idx3-ubyte", 30); }, "t10k-images-idx3-ubyte", "14 bytes", "24"},
    {"CutInTheHeader", [](const Folder& f) { f.cut("t10k-labels-idx1-ubyte", 5); }, "t10k-labels-idx1-ubyte", "5 bytes", "8 bytes"},
    {"Empty", [](const Folder& f) { f.write("t10k-labels-idx1-ubyte", ""); }, "t10k-labels-idx1-ubyte", "0 bytes", "8 bytes"},
    {"SwappedFiles", [](const Folder& f) { f.write("t10k-images-idx3-ubyte", labels(40)); }, "t10k-images-idx3-ubyte", "0x00000801",
     "0x00000803"},
    {"AnotherFormat", [](const Folder& f) { f.write("t10k-images-idx3-ubyte", "<html>404 Not Found</html>"); }, "t10k-images-idx3-ubyte",
     "0x3c68746d", "0x00000803"},
    {"NoItems", [](const Folder& f) { f.write("t10k-images-idx3-ubyte", images(0)); }, "t10k-images-idx3-ubyte", "size of 0",
     "one item or more"},
    {"HugeSides",
     [](const Folder& f) {
       f.write("t10k-images-idx3-ubyte", Bytes{0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255});
     },
     "t10k-images-idx3-ubyte", "4294967295", "256"},
    {"TrailingBytes",
     [](const Folder& f) {
       Bytes b = labels(4);
       b.push_back(0);
       f.write("t10k-labels-idx1-ubyte", b);
     },
     "t10k-labels-idx1-ubyte", "5 bytes", "4"},
    {"FewerLabelsThanImages", [](const Folder& f) { f.write("t10k-labels-idx1-ubyte", labels(3)); }, "t10k-labels-idx1-ubyte", "3 labels",
     "4"},
    {"LabelOutOfRange", [](const Folder& f) { f.write("t10k-labels-idx1-ubyte", labels(4, 10)); }, "t10k-labels-idx1-ubyte", "label 10",
     "0 to 9"},
    {"AnotherSizeInTheTest", [](const Folder& f) { f.write("t10k-images-idx3-ubyte", images(4, 3, 3)); }, "t10k-images-idx3-ubyte", "3x3",
     "2x3"},
};
INSTANTIATE_TEST_SUITE_P(Each, DamagedIdx, testing::ValuesIn(damages), [](const auto& each) { return each.param.name; });

TEST(Idx, Refuses_a_gzip_file_damaged_in_the_middle) {
  const Folder folder;
  write_good_files(folder);
  Bytes noise = images(200);
  for (std::size_t i = 16; i < noise.size(); ++i) noise[i] = static_cast<std::uint8_t>(i * i * 7 + i / 3);
  folder.pack("train-images-idx3-ubyte.gz", noise);
  std::fstream file(folder.path() / "train-images-idx3-ubyte.gz", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.write("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
  file.close();
  expect_refused(load_idx(folder.path(), remedy, EvaluateOn::test), {"train-images-idx3-ubyte.gz", "found", "expected", remedy});
}

}  // namespace
}  // namespace motley::learn
