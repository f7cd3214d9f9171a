// The interface of a data set: the shape of its samples, and batches of them in spans that the learner owns. Torch-free.
//
// To add one, derive from DataSet and register a factory (registry.h):
//   class Mine : public DataSet {
//     SampleShape shape() const override { return {.channels = 16, .height = 1, .width = 1, .classes = 4}; }
//     std::uint64_t size(Part part) const override { return part == Part::training ? 50'000 : 10'000; }
//     std::vector<std::uint32_t> labels(Part part) const override { ... }
//     void gather(Part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const override;
//   };
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

/// Inputs that a model must accept and outputs that it must produce. Flat features are pictures of 1x1 with `features` channels.
struct SampleShape {
  bool text{};              // a sample is `context` character codes, and its target as many
  std::int64_t channels{};  // pictures and features
  std::int64_t height{};
  std::int64_t width{};
  std::int64_t context{};  // text
  std::int64_t classes{};  // labels, or the vocabulary of a text
  /// Input values per sample.
  [[nodiscard]] std::int64_t inputs() const { return text ? context : channels * height * width; }
  /// Classes to predict per sample.
  [[nodiscard]] std::int64_t targets() const { return text ? context : 1; }
};
/// "1x28x28 pictures of 10 classes"
std::string describe(const SampleShape& shape);

/// Loaded once, shared by all learners of the process, never changed: any thread may gather.
class DataSet {
 public:
  virtual ~DataSet() = default;
  [[nodiscard]] virtual SampleShape shape() const = 0;
  [[nodiscard]] virtual std::uint64_t size(Part part) const = 0;
  /// The class of each sample; empty for text, where a sample has several targets.
  [[nodiscard]] virtual std::vector<std::uint32_t> labels(Part part) const = 0;

  /// Writes the samples one after the other: shape().inputs() values and shape().targets() classes each; the spans have exactly that size.
  /// Override one of the two: the second for text, the first for all other data.
  virtual void gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const;
  virtual void gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
                      std::span<std::int64_t> targets) const;
};

/// Implements the built-in data sets.
class InMemoryDataSet final : public DataSet {
 public:
  using Content = std::variant<Pictures, Vectors, Text>;
  explicit InMemoryDataSet(Content content);

  [[nodiscard]] SampleShape shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t size(Part part) const override;
  [[nodiscard]] std::vector<std::uint32_t> labels(Part part) const override;
  /// Pictures are normalised by the mean and deviation of each channel over the training set.
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const override;
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
              std::span<std::int64_t> targets) const override;

 private:
  Content content_;
  SampleShape shape_;
};

}  // namespace motley::learn
