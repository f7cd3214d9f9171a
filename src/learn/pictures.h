// Labelled pictures in memory as bytes (a quarter of the memory of floats); gathering makes normalised floats of them.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "learn/files.h"

namespace motley::learn {

/// Pictures one after the other, each channel by channel, row by row; one label each.
struct LabelledPictures {
  Bytes pixels;
  Bytes labels;
};

struct PictureFormat {
  std::int64_t channels{};
  std::int64_t height{};
  std::int64_t width{};
  std::int64_t classes{};
  [[nodiscard]] std::size_t pixels() const { return static_cast<std::size_t>(channels * height * width); }
};

class Pictures {
 public:
  /// Both parts must match the format. Normalises by mean and deviation of each channel over `training`.
  Pictures(PictureFormat format, LabelledPictures training, LabelledPictures evaluation);

  [[nodiscard]] const PictureFormat& format() const { return format_; }
  [[nodiscard]] const LabelledPictures& training() const { return training_; }
  [[nodiscard]] const LabelledPictures& evaluation() const { return evaluation_; }

  /// (pixel - mean) / deviation of each pixel of each sample of `part`, which is one of the two above.
  void gather(const LabelledPictures& part, std::span<const std::uint32_t> samples, std::span<float> inputs,
              std::span<std::int64_t> targets) const;

 private:
  struct Normalise {
    float scale{};  // 1 / deviation
    float shift{};  // -mean / deviation
  };
  PictureFormat format_;
  LabelledPictures training_;
  LabelledPictures evaluation_;
  std::vector<Normalise> channels_;
};

/// Removes the last tenth of the pictures and returns it.
LabelledPictures take_last_tenth(LabelledPictures& training, const PictureFormat& format);

}  // namespace motley::learn
