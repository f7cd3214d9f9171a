// Refuses files with a wrong magic number, count, size or label.
#include "learn/idx.h"

#include <fmt/format.h>

#include <algorithm>

namespace motley::learn {

namespace {

constexpr std::int64_t classes = 10;
constexpr std::uint32_t images_magic = 0x0803;
constexpr std::uint32_t labels_magic = 0x0801;
constexpr std::uint32_t max_side = 256;

struct Source {
  std::filesystem::path folder;
  std::string_view remedy;
};

std::uint32_t word(const Bytes& bytes, std::size_t index) {
  const std::uint8_t* b = bytes.data() + 4 * index;
  return std::uint32_t{b[0]} << 24 | std::uint32_t{b[1]} << 16 | std::uint32_t{b[2]} << 8 | std::uint32_t{b[3]};
}

struct IdxFile {
  std::filesystem::path path;
  std::vector<std::uint32_t> sizes;  // count, or count, rows, columns
  Bytes body;                        // exactly the product of the sizes
};

Result<IdxFile> read_idx(const Source& from, std::string_view name, std::uint32_t magic, std::string_view what) {
  const std::filesystem::path path = plain_or_packed(from.folder, name);
  auto bytes = read_file(path, what, from.remedy);
  if (!bytes) return bytes.error();
  const std::size_t dimensions = magic & 0xff, header = 4 * (1 + dimensions);
  if (bytes->size() < header)
    return bad_file(path, fmt::format("{} bytes", bytes->size()), fmt::format("{} with a header of {} bytes", what, header), from.remedy);
  if (word(*bytes, 0) != magic)
    return bad_file(path, fmt::format("magic number {:#010x}", word(*bytes, 0)), fmt::format("{:#010x} ({})", magic, what), from.remedy);

  IdxFile file{path, {}, {}};
  std::uint64_t product = 1;
  for (std::size_t d = 0; d < dimensions; ++d) {
    file.sizes.push_back(word(*bytes, 1 + d));
    const bool sane = file.sizes[d] >= 1 && (d == 0 || file.sizes[d] <= max_side);  // so that the product cannot overflow
    if (!sane)
      return bad_file(path, fmt::format("a size of {} in the header", file.sizes[d]),
                      fmt::format("one item or more, of sides 1 to {}", max_side), from.remedy);
    product *= file.sizes[d];
  }
  if (bytes->size() - header != product)
    return bad_file(path, fmt::format("{} bytes behind the header", bytes->size() - header),
                    fmt::format("{}, as its header counts", product), from.remedy);
  bytes->erase(bytes->begin(), bytes->begin() + static_cast<std::ptrdiff_t>(header));
  file.body = std::move(*bytes);
  return file;
}

struct IdxPair {
  LabelledPictures pictures;
  std::uint32_t rows{};
  std::uint32_t columns{};
};

/// The two files of one split: "train" or "t10k".
Result<IdxPair> read_pair(const Source& from, std::string_view split) {
  auto images = read_idx(from, fmt::format("{}-images-idx3-ubyte", split), images_magic, "an idx file of images");
  if (!images) return images.error();
  auto labels = read_idx(from, fmt::format("{}-labels-idx1-ubyte", split), labels_magic, "an idx file of labels");
  if (!labels) return labels.error();
  if (images->sizes[0] != labels->sizes[0])
    return bad_file(labels->path, fmt::format("{} labels", labels->sizes[0]),
                    fmt::format("{}, one for each image of {}", images->sizes[0], images->path.filename().string()), from.remedy);
  const std::uint8_t highest = *std::max_element(labels->body.begin(), labels->body.end());
  if (highest >= classes)
    return bad_file(labels->path, fmt::format("label {}", highest), fmt::format("labels 0 to {}", classes - 1), from.remedy);
  return IdxPair{{std::move(images->body), std::move(labels->body)}, images->sizes[1], images->sizes[2]};
}

}  // namespace

Result<Pictures> load_idx(const std::filesystem::path& folder, std::string_view remedy, EvaluateOn evaluate_on) {
  const Source from{folder, remedy};
  auto training = read_pair(from, "train");
  if (!training) return training.error();
  const PictureFormat format{1, training->rows, training->columns, classes};
  if (evaluate_on == EvaluateOn::validation) {
    if (training->pictures.labels.size() < 10)
      return bad_file(folder, fmt::format("{} training images", training->pictures.labels.size()),
                      "10 or more, to keep a tenth for validation", remedy);
    auto tenth = take_last_tenth(training->pictures, format);
    return Pictures(format, std::move(training->pictures), std::move(tenth));
  }
  auto test = read_pair(from, "t10k");
  if (!test) return test.error();
  if (test->rows != training->rows || test->columns != training->columns)
    return bad_file(folder / "t10k-images-idx3-ubyte", fmt::format("images of {}x{}", test->rows, test->columns),
                    fmt::format("{}x{}, as in training", training->rows, training->columns), remedy);
  return Pictures(format, std::move(training->pictures), std::move(test->pictures));
}

}  // namespace motley::learn
