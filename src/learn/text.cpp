// Reads a text and numbers its characters.
#include "learn/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace motley::learn {

namespace {

constexpr std::string_view remedy = "set [data] path to a text file, or to a folder of .txt files";
constexpr std::uint64_t max_context = 4096;  // attention's cost grows with its square

/// The .txt files of a folder by name, or the file itself.
Result<std::vector<std::filesystem::path>> files_of(const std::filesystem::path& path) {
  std::error_code failed;
  if (!std::filesystem::is_directory(path, failed)) return std::vector{path};
  std::vector<std::filesystem::path> files;
  for (std::filesystem::directory_iterator entry(path, failed), end; !failed && entry != end; entry.increment(failed))
    if (entry->path().extension() == ".txt") files.push_back(entry->path());
  if (failed) return bad_file(path, failed.message(), "a folder of .txt files", remedy);
  if (files.empty()) return bad_file(path, "a folder without .txt files", "one or more", remedy);
  std::sort(files.begin(), files.end());
  return files;
}

Result<Bytes> joined(const std::filesystem::path& path) {
  auto files = files_of(path);
  if (!files) return files.error();
  Bytes all;
  for (const std::filesystem::path& file : *files) {
    auto bytes = read_file(file, "a text", remedy);
    if (!bytes) return bytes.error();
    all.insert(all.end(), bytes->begin(), bytes->end());
  }
  return all;
}

/// Replaces each byte by its rank among the distinct ones, and returns their number.
std::uint64_t number_characters(Bytes& text) {
  std::array<bool, 256> present{};
  for (const std::uint8_t byte : text) present[byte] = true;
  std::array<std::uint8_t, 256> code{};
  std::uint64_t vocabulary = 0;
  for (std::size_t byte = 0; byte < 256; ++byte)
    if (present[byte]) code[byte] = static_cast<std::uint8_t>(vocabulary++);
  for (std::uint8_t& byte : text) byte = code[byte];
  return vocabulary;
}

}  // namespace

void Text::gather(const Bytes& part, std::span<const std::uint32_t> samples_wanted, std::span<std::int64_t> codes,
                  std::span<std::int64_t> targets) const {
  check(codes.size() == samples_wanted.size() * context && targets.size() == codes.size(), "the spans have room for the samples");
  const std::uint64_t count = samples(part);
  for (std::size_t s = 0; s < samples_wanted.size(); ++s) {
    check(samples_wanted[s] < count, "a sample's index lies within its part of the data set");
    const std::uint8_t* first = part.data() + samples_wanted[s] * context;
    std::copy_n(first, context, codes.data() + s * context);
    std::copy_n(first + 1, context, targets.data() + s * context);
  }
}

Result<Text> load_text(const std::filesystem::path& path, std::uint64_t context, EvaluateOn evaluate_on) {
  if (context < 1 || context > max_context)
    return bad_input(fmt::format("cannot cut {} into samples: found context = {}, expected 1 to {}; change [data] context", path.string(),
                                 context, max_context));
  auto bytes = joined(path);
  if (!bytes) return bytes.error();
  const std::size_t characters = bytes->size();

  Text text{context, number_characters(*bytes), std::move(*bytes), {}};
  text.evaluation = take_last_tenth(text.training);
  if (evaluate_on == EvaluateOn::validation) text.evaluation = take_last_tenth(text.training);
  if (text.samples(text.training) == 0 || text.samples(text.evaluation) == 0)
    return bad_file(path, fmt::format("{} characters", characters),
                    fmt::format("enough that the last tenth holds context + 1 = {}", context + 1), remedy);
  if (text.vocabulary < 2) return bad_file(path, "one distinct character", "two or more", remedy);
  return text;
}

}  // namespace motley::learn
