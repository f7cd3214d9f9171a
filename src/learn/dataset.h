// DataSet: the shape of samples, and how samples become the numbers that a model reads. Torch-free: it fills spans that the learner owns.
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

/// Samples in memory or wherever the implementation keeps them. Loaded once, shared by every learner of the process, never changed: any
/// thread may gather.
class DataSet {
 public:
  virtual ~DataSet() = default;
  [[nodiscard]] virtual SampleShape shape() const = 0;
  [[nodiscard]] virtual std::uint64_t size(Part part) const = 0;
  /// The class of each sample; empty where a sample has no one class, as in text.
  [[nodiscard]] virtual std::vector<std::uint32_t> labels(Part part) const = 0;

  /// Writes the samples one behind the other: shape().inputs() numbers and shape().targets() classes each; the spans have exactly that
  /// size. Text is gathered as codes, everything else as floats; an implementation needs one of the two.
  virtual void gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const;
  virtual void gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
                      std::span<std::int64_t> targets) const;
};

/// The built-in kinds of data.
class InMemoryDataSet final : public DataSet {
 public:
  using Content = std::variant<Pictures, Vectors, Text>;
  explicit InMemoryDataSet(Content content);

  [[nodiscard]] SampleShape shape() const override { return shape_; }
  [[nodiscard]] std::uint64_t size(Part part) const override;
  [[nodiscard]] std::vector<std::uint32_t> labels(Part part) const override;
  /// Pictures and features are normalised.
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<float> inputs, std::span<std::int64_t> targets) const override;
  void gather(Part part, std::span<const std::uint32_t> samples, std::span<std::int64_t> codes,
              std::span<std::int64_t> targets) const override;

 private:
  Content content_;
  SampleShape shape_;
};

}  // namespace motley::learn
