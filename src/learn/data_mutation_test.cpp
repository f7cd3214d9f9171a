// Damaged data files: either an error that names the file, or a data set of which every sample can be read.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <numeric>

#include "base/mutations_for_tests.h"
#include "learn/cifar.h"
#include "learn/dataset.h"
#include "learn/idx.h"
#include "learn/test_files.h"

namespace motley::learn {
namespace {

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Bytes noise(std::size_t count, Rng& rng, std::uint64_t below = 256) {
  Bytes bytes(count);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(rng.below(below));
  return bytes;
}

/// Reads every sample.
void read_all(const DataSet& data) {
  for (const Part part : {Part::training, Part::evaluation}) {
    std::vector<std::uint32_t> samples(data.size(part));
    std::iota(samples.begin(), samples.end(), 0U);
    std::vector<std::int64_t> targets(samples.size() * static_cast<std::size_t>(data.shape().targets()));
    const std::size_t inputs = samples.size() * static_cast<std::size_t>(data.shape().inputs());
    if (data.shape().text) {
      std::vector<std::int64_t> codes(inputs);
      data.gather(part, samples, codes, targets);
    } else {
      std::vector<float> values(inputs);
      data.gather(part, samples, values, targets);
    }
    for (const std::int64_t target : targets) ASSERT_TRUE(target >= 0 && target < data.shape().classes);
  }
}

/// Damages one file at a time.
template <class BatchingPolicy>
void expect_answers(const Folder& folder, const char* stream, BatchingPolicy load) {
  std::vector<std::pair<std::filesystem::path, std::string>> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) files.emplace_back(entry.path(), bytes_of(entry.path()));
  std::sort(files.begin(), files.end());
  mallopt(M_MMAP_THRESHOLD, 16 << 20);  // reuses the 1 MiB buffers of read_file() instead of returning them to the kernel
  ASSERT_TRUE(load().ok());
  const std::uint64_t before = peak_bytes();
  for (std::uint64_t seed = 0; seed < mutations / 2; ++seed) {  // of each of three kinds
    SCOPED_TRACE(seed);
    Rng rng(seed, stream);
    const auto& [path, whole] = files[rng.below(files.size())];
    std::ofstream(path, std::ios::binary | std::ios::trunc) << mutated(whole, rng);
    auto loaded = load();
    if (loaded.ok())
      read_all(InMemoryDataSet(std::move(*loaded)));
    else
      ASSERT_EQ(loaded.error().next, Next::tell_user);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << whole;
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_LT(peak_bytes() - before, most_growth);
}

Bytes idx(std::uint32_t magic, const std::vector<std::uint32_t>& sizes, const Bytes& body) {
  Bytes bytes;
  const auto put = [&](std::uint32_t number) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<std::uint8_t>(number >> shift));
  };
  put(magic);
  for (const std::uint32_t size : sizes) put(size);
  bytes.insert(bytes.end(), body.begin(), body.end());
  return bytes;
}

TEST(DataMutations, Damaged_idx_files_are_refused_or_readable) {
  const Folder folder;
  Rng rng(1, "idx");
  folder.write("train-images-idx3-ubyte", idx(0x803, {12, 4, 4}, noise(192, rng)));
  folder.write("train-labels-idx1-ubyte", idx(0x801, {12}, noise(12, rng, 10)));
  folder.pack("t10k-images-idx3-ubyte.gz", idx(0x803, {5, 4, 4}, noise(80, rng)));
  folder.pack("t10k-labels-idx1-ubyte.gz", idx(0x801, {5}, noise(5, rng, 10)));
  expect_answers(folder, "idx", [&] { return load_idx(folder.path(), "mend it", EvaluateOn::test); });
}

TEST(DataMutations, Damaged_cifar_files_are_refused_or_readable) {
  const Folder folder;
  Rng rng(1, "cifar");
  for (const char* name : {"train.bin", "test.bin"}) {
    Bytes records;
    for (int n = 0; n < 3; ++n) {
      const Bytes labels = noise(2, rng, 20), pixels = noise(3072, rng);
      records.insert(records.end(), labels.begin(), labels.end());
      records.insert(records.end(), pixels.begin(), pixels.end());
    }
    folder.write(name, records);
  }
  expect_answers(folder, "cifar", [&] { return load_cifar100(folder.path(), EvaluateOn::test); });
}

TEST(DataMutations, Damaged_texts_are_refused_or_readable) {
  const Folder folder;
  folder.write("a.txt", std::string("It was the best of times, it was the worst of times, it was the age of wisdom"));
  folder.write("b.txt", std::string("and it was told twice"));
  expect_answers(folder, "text", [&] { return load_text(folder.path(), 4, EvaluateOn::test); });
}

TEST(DataMutations, Mutated_specs_of_synthetic_data_are_refused_or_readable) {
  constexpr std::array<std::uint64_t, 9> numbers{0, 1, 2, 9, 16, 40, 65'537, std::uint64_t{1} << 32, ~std::uint64_t{0}};
  const std::uint64_t before = peak_bytes();
  for (std::uint64_t seed = 0; seed < mutations; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, "vectors");
    DataSpec spec;
    spec.features = numbers[rng.below(numbers.size())];
    spec.classes = numbers[rng.below(numbers.size())];
    spec.samples = rng.below(2) == 0 ? 40 : spec.features;
    auto made = make_synthetic(spec, rng.below(2) == 0 ? EvaluateOn::test : EvaluateOn::validation);
    if (made.ok()) read_all(InMemoryDataSet(std::move(*made)));
  }
  EXPECT_LT(peak_bytes() - before, most_growth);
}

}  // namespace
}  // namespace motley::learn
