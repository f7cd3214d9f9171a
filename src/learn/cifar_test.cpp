// CIFAR's records: labels and colour planes are read from their places; each kind of damage is refused by name.
#include "learn/cifar.h"

#include "learn/test_files.h"

namespace motley::learn {
namespace {

/// One record: its labels, then planes of red, green and blue in one value each.
void append_record(Bytes& bytes, const Bytes& labels, std::uint8_t red) {
  bytes.insert(bytes.end(), labels.begin(), labels.end());
  for (const int plane : {0, 1, 2}) bytes.insert(bytes.end(), 1024, static_cast<std::uint8_t>(red + plane));
}

Bytes record(const Bytes& labels, std::uint8_t red) {
  Bytes bytes;
  append_record(bytes, labels, red);
  return bytes;
}

void write_cifar10(const Folder& folder) {
  for (std::uint8_t batch = 1; batch <= 5; ++batch) {
    Bytes two;
    append_record(two, {batch}, 10);
    append_record(two, {batch}, 20);
    folder.write("data_batch_" + std::to_string(batch) + ".bin", two);
  }
  folder.write("test_batch.bin", record({9}, 40));
}

TEST(Cifar, Five_batch_files_are_one_training_set) {
  const Folder folder;
  write_cifar10(folder);
  const auto loaded = load_cifar10(folder.path(), EvaluateOn::test);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->training().labels, (Bytes{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
  EXPECT_EQ(loaded->training().pixels[3072 + 2 * 1024], 22);
  EXPECT_EQ(loaded->evaluation().labels, Bytes{9});
  EXPECT_EQ(loaded->format().channels, 3);
}

TEST(Cifar, Validation_is_the_last_tenth_and_reads_no_test_file) {
  const Folder folder;
  write_cifar10(folder);
  folder.remove("test_batch.bin");
  const auto loaded = load_cifar10(folder.path(), EvaluateOn::validation);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->training().labels.size(), 9U);
  EXPECT_EQ(loaded->evaluation().labels, Bytes{5});
}

TEST(Cifar, Cifar100_uses_the_fine_label) {
  const Folder folder;
  folder.write("train.bin", record({7, 99}, 10));
  folder.write("test.bin", record({19, 42}, 10));
  const auto loaded = load_cifar100(folder.path(), EvaluateOn::test);
  ASSERT_TRUE(loaded.ok()) << loaded.error().message;
  EXPECT_EQ(loaded->training().labels, Bytes{99});
  EXPECT_EQ(loaded->evaluation().labels, Bytes{42});
  EXPECT_EQ(loaded->format().classes, 100);
}

TEST(Cifar, Absent_file_is_named_with_the_archive_to_fetch) {
  const Folder folder;
  expect_refused(load_cifar10(folder.path(), EvaluateOn::test),
                 {"data_batch_1.bin", "no such file", "3073", "cifar-10-binary.tar.gz", "test_batch.bin"});
  expect_refused(load_cifar100(folder.path(), EvaluateOn::test), {"train.bin", "no such file", "3074", "cifar-100-binary.tar.gz"});
}

TEST(Cifar, Refuses_a_file_with_a_partial_record) {
  const Folder folder;
  write_cifar10(folder);
  folder.cut("data_batch_4.bin", 3073 + 17);
  expect_refused(load_cifar10(folder.path(), EvaluateOn::test), {"data_batch_4.bin", "3090 bytes", "records of 3073 bytes"});
  folder.write("data_batch_4.bin", "");
  expect_refused(load_cifar10(folder.path(), EvaluateOn::test), {"data_batch_4.bin", "0 bytes", "records of 3073 bytes"});
}

TEST(Cifar, Refuses_a_label_out_of_range_with_its_record) {
  const Folder folder;
  write_cifar10(folder);
  folder.write("test_batch.bin", record({10}, 40));
  expect_refused(load_cifar10(folder.path(), EvaluateOn::test), {"test_batch.bin", "label 10 in record 0", "0 to 9"});
}

TEST(Cifar, Refuses_validation_with_too_few_pictures) {
  const Folder folder;
  folder.write("train.bin", record({7, 99}, 10));
  expect_refused(load_cifar100(folder.path(), EvaluateOn::validation), {folder.path().string(), "1 training pictures", "10 or more"});
}

}  // namespace
}  // namespace motley::learn
