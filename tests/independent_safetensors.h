// A second reader of safetensors files for tests that must not rely on src/store: shares no code with it and supports F32 only. It throws
// std::runtime_error on everything that it does not support, which fails the test with a reason.
//
//   file := header_bytes:u64 header data      header := {name: {"dtype": "F32", "shape": [...], "data_offsets": [begin, end]}, ...}
#pragma once
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace independent {

struct Tensor {
  std::vector<std::uint64_t> shape;
  std::vector<float> values;
};

struct Safetensors {
  std::map<std::string, Tensor> tensors;  // by name
  std::map<std::string, std::string> metadata;
};

/// Parses the header's JSON; supports objects, lists of integers, and text with simple escapes.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  /// Calls entry(key) at each value of the object; entry must read the value.
  template <class Entry>
  void object(Entry entry) {
    take('{');
    for (bool first = true; !taken('}'); first = false) {
      if (!first) take(',');
      const std::string key = text();
      take(':');
      entry(key);
    }
  }
  std::vector<std::uint64_t> numbers() {
    std::vector<std::uint64_t> all;
    take('[');
    while (!taken(']')) {
      if (!all.empty()) take(',');
      all.push_back(number());
    }
    return all;
  }
  std::string text() {
    take('"');
    std::string out;
    while (peek() != '"') {
      char c = next();
      if (c == '\\') {
        c = next();
        if (c == 'n')
          c = '\n';
        else if (c == 't')
          c = '\t';
        else if (c == 'u')
          c = code();
        else if (c != '"' && c != '\\' && c != '/')
          fail("an escape that this reader does not know");
      }
      out += c;
    }
    return next(), out;
  }
  /// Only padding may follow.
  void end() {
    skip();
    if (at_ != text_.size()) fail("data after the header's end");
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error("safetensors header at byte " + std::to_string(at_) + ": " + what);
  }
  [[nodiscard]] char peek() const {
    if (at_ >= text_.size()) fail("it ends too early");
    return text_[at_];
  }
  char next() {
    const char c = peek();
    ++at_;
    return c;
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool taken(char c) {
    skip();
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  void take(char c) {
    if (!taken(c)) fail(std::string("expected '") + c + "', found '" + peek() + "'");
  }
  std::uint64_t number() {
    skip();
    std::size_t digits = 0;
    std::uint64_t value = 0;
    for (; at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0; ++at_, ++digits)
      value = value * 10 + static_cast<std::uint64_t>(text_[at_] - '0');
    if (digits == 0 || digits > 18) fail("expected a whole number");
    return value;
  }
  /// The "00XX" of a \u escape: names of tensors are ASCII.
  char code() {
    std::string hex;
    for (int i = 0; i < 4; ++i) {
      if (std::isxdigit(static_cast<unsigned char>(peek())) == 0) fail("a \\u escape without four digits");
      hex += next();
    }
    const int value = std::stoi(hex, nullptr, 16);
    if (value >= 0x80) fail("a \\u escape beyond ASCII");
    return static_cast<char>(value);
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

inline Safetensors read_safetensors(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error(path.string() + ": cannot be read");
  const std::string file{std::istreambuf_iterator<char>(in), {}};
  const auto fail = [&](const std::string& what) { throw std::runtime_error(path.string() + ": " + what); };

  std::uint64_t header_bytes = 0;
  if (file.size() < sizeof header_bytes) fail("too short for the length of a header");
  for (std::size_t i = sizeof header_bytes; i-- > 0;) header_bytes = header_bytes << 8U | static_cast<unsigned char>(file[i]);
  if (header_bytes > file.size() - sizeof header_bytes) fail("too short for its header");
  const std::string_view header = std::string_view(file).substr(sizeof header_bytes, header_bytes);
  const std::string_view data = std::string_view(file).substr(sizeof header_bytes + header_bytes);

  Safetensors read;
  std::uint64_t covered = 0;
  HeaderReader json(header);
  json.object([&](const std::string& name) {
    if (name == "__metadata__") return json.object([&](const std::string& key) { read.metadata[key] = json.text(); });
    std::string dtype;
    std::vector<std::uint64_t> offsets;
    Tensor tensor;
    json.object([&](const std::string& key) {
      if (key == "dtype")
        dtype = json.text();
      else if (key == "shape")
        tensor.shape = json.numbers();
      else if (key == "data_offsets")
        offsets = json.numbers();
      else
        fail(name + ": unknown key " + key);
    });
    if (dtype != "F32") fail(name + ": found dtype '" + dtype + "', expected F32");
    std::uint64_t bytes = sizeof(float);
    for (const std::uint64_t extent : tensor.shape) bytes *= extent;
    if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > data.size() || offsets[1] - offsets[0] != bytes)
      fail(name + ": its offsets do not fit its shape or the file");
    tensor.values.resize(bytes / sizeof(float));
    if (bytes > 0) std::memcpy(tensor.values.data(), data.data() + offsets[0], bytes);
    covered += bytes;
    if (!read.tensors.emplace(name, std::move(tensor)).second) fail(name + ": twice");
  });
  json.end();
  if (covered != data.size()) fail("its tensors do not cover its data");
  return read;
}

}  // namespace independent
