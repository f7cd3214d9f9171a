// The inside of a data set: what a sample looks like and how samples become the numbers a model reads. For this room only.
// Knows nothing of torch: it fills spans that the learner owns.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "learn/data.h"
#include "learn/pictures.h"
#include "learn/text.h"
#include "learn/vectors.h"

namespace motley::learn {

enum class Part { training, evaluation };

/// What a model must accept and produce. Flat features are pictures of 1x1 with `features` channels.
struct SampleShape {
  bool text{};              // a sample is `context` character codes, and so is its target
  std::int64_t channels{};  // pictures and features
  std::int64_t height{};
  std::int64_t width{};
  std::int64_t context{};  // text
  std::int64_t classes{};  // labels, or the vocabulary of a text
  /// Numbers a model reads per sample.
  [[nodiscard]] std::int64_t inputs() const { return text ? context : channels * height * width; }
  /// Classes it must name per sample.
  [[nodiscard]] std::int64_t targets() const { return text ? context : 1; }
};
/// "1x28x28 pictures of 10 classes"
std::string describe(const SampleShape& shape);

class DataSet {
 public:
  using Content = std::variant<Pictures, Vectors, Text>;
  explicit DataSet(Content content);

  [[nodiscard]] const SampleShape& shape() const { return shape_; }
  [[nodiscard]] std::uint64_t size(Part part) const;
  /// Of each sample; empty for text.
  [[nodiscard]] std::vector<std::uint32_t> labels(Part part) const;

  /// Writes the samples one behind the other: inputs() numbers and targets() classes each; the spans have exactly that room.
  /// Pictures and features are normalised floats; only text has codes.
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const;
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes, std::span<std::int64_t> targets) const;

 private:
  Content content_;
  SampleShape shape_;
};

}  // namespace motley::learn
