// One reader for both: a CIFAR is its file names, its bytes of labels and its classes.
#include "learn/cifar.h"

#include <fmt/format.h>

namespace motley::learn {

namespace {

constexpr std::size_t picture_bytes = 3 * 32 * 32;

struct Cifar {
  std::vector<std::string_view> training;
  std::string_view test;
  std::size_t label_bytes{};  // the last of them is the label
  std::int64_t classes{};
  std::string_view remedy;
};

const Cifar cifar10{{"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
                    "test_batch.bin",
                    1,
                    10,
                    "fetch https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz and put data_batch_1.bin to data_batch_5.bin and "
                    "test_batch.bin into that folder"};
const Cifar cifar100{{"train.bin"},
                     "test.bin",
                     2,
                     100,
                     "fetch https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz and put train.bin and test.bin into that folder"};

Outcome append(const std::filesystem::path& file, const Cifar& kind, LabelledPictures& to) {
  const std::size_t record = kind.label_bytes + picture_bytes;
  const std::string expected = fmt::format("records of {} bytes", record);
  auto bytes = read_file(file, expected, kind.remedy);
  if (!bytes) return bytes.error();
  if (bytes->empty() || bytes->size() % record != 0)
    return bad_file(file, fmt::format("{} bytes", bytes->size()), fmt::format("one or more {}", expected), kind.remedy);
  for (std::size_t start = 0; start < bytes->size(); start += record) {
    const auto picture = bytes->begin() + static_cast<std::ptrdiff_t>(start + kind.label_bytes);
    const std::uint8_t label = *(picture - 1);
    if (label >= kind.classes)
      return bad_file(file, fmt::format("label {} in record {}", label, start / record), fmt::format("labels 0 to {}", kind.classes - 1),
                      kind.remedy);
    to.labels.push_back(label);
    to.pixels.insert(to.pixels.end(), picture, picture + picture_bytes);
  }
  return Done{};
}

Result<Pictures> load_cifar(const std::filesystem::path& folder, const Cifar& kind, EvaluateOn evaluate_on) {
  const PictureFormat format{3, 32, 32, kind.classes};
  LabelledPictures training, evaluation;
  for (const std::string_view name : kind.training)
    if (auto read = append(folder / name, kind, training); !read) return read.error();
  if (evaluate_on == EvaluateOn::test) {
    if (auto read = append(folder / kind.test, kind, evaluation); !read) return read.error();
  } else if (training.labels.size() < 10) {
    return bad_file(folder, fmt::format("{} training pictures", training.labels.size()), "10 or more, to keep a tenth for validation",
                    kind.remedy);
  } else {
    evaluation = take_last_tenth(training, format);
  }
  return Pictures(format, std::move(training), std::move(evaluation));
}

}  // namespace

Result<Pictures> load_cifar10(const std::filesystem::path& folder, EvaluateOn evaluate_on) {
  return load_cifar(folder, cifar10, evaluate_on);
}
Result<Pictures> load_cifar100(const std::filesystem::path& folder, EvaluateOn evaluate_on) {
  return load_cifar(folder, cifar100, evaluate_on);
}

}  // namespace motley::learn
