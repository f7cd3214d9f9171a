// Pixels are summed as whole numbers, so mean and deviation do not depend on the order of summing.
#include "learn/pictures.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "learn/split.h"

namespace motley::learn {

namespace {

struct Moments {
  double mean{};
  double deviation{};
};

Moments moments_of_channel(const Bytes& pixels, std::size_t picture, std::size_t first, std::size_t count) {
  std::uint64_t sum = 0, squares = 0, n = 0;
  for (std::size_t start = first; start < pixels.size(); start += picture) {
    std::uint32_t picture_sum = 0, picture_squares = 0;  // 255^2 x 65,536 pixels fit: checked by the constructor
    for (std::size_t i = start; i < start + count; ++i) {
      const std::uint32_t pixel = pixels[i];
      picture_sum += pixel;
      picture_squares += pixel * pixel;
    }
    sum += picture_sum;
    squares += picture_squares;
    n += count;
  }
  const double mean = static_cast<double>(sum) / static_cast<double>(n);
  const double variance = static_cast<double>(squares) / static_cast<double>(n) - mean * mean;
  return {mean, std::sqrt(std::max(variance, 0.0))};
}

}  // namespace

Pictures::Pictures(PictureFormat format, LabelledPictures training, LabelledPictures evaluation)
    : format_(format), training_(std::move(training)), evaluation_(std::move(evaluation)) {
  for (const LabelledPictures* part : {&training_, &evaluation_}) {
    check(!part->labels.empty(), "a part of a data set holds a picture or more");
    check(part->pixels.size() == part->labels.size() * format_.pixels(), "each label has one picture of the data set's format");
  }
  const auto area = static_cast<std::size_t>(format_.height * format_.width);
  check(area <= 65'536, "a channel of a picture has at most 65,536 pixels");
  for (std::size_t c = 0; c < static_cast<std::size_t>(format_.channels); ++c) {
    const Moments moments = moments_of_channel(training_.pixels, format_.pixels(), c * area, area);
    const double deviation = moments.deviation > 0 ? moments.deviation : 1;  // a channel of one value becomes zeros
    channels_.push_back({static_cast<float>(1 / deviation), static_cast<float>(-moments.mean / deviation)});
  }
}

void Pictures::gather(const LabelledPictures& part, std::span<const std::uint32_t> samples, std::span<float> inputs,
                      std::span<std::int64_t> targets) const {
  const std::size_t area = static_cast<std::size_t>(format_.height * format_.width);
  check(inputs.size() == samples.size() * format_.pixels() && targets.size() == samples.size(), "the spans have room for the samples");
  float* out = inputs.data();
  for (std::size_t s = 0; s < samples.size(); ++s) {
    check(samples[s] < part.labels.size(), "a sample's index lies within its part of the data set");
    targets[s] = part.labels[samples[s]];
    const std::uint8_t* pixel = part.pixels.data() + samples[s] * format_.pixels();
    for (const Normalise channel : channels_)
      for (const std::uint8_t* end = pixel + area; pixel != end; ++pixel, ++out)
        *out = static_cast<float>(*pixel) * channel.scale + channel.shift;
  }
}

LabelledPictures take_last_tenth(LabelledPictures& training, const PictureFormat& format) {
  return {take_last_tenth(training.pixels, format.pixels()), take_last_tenth(training.labels)};
}

}  // namespace motley::learn
