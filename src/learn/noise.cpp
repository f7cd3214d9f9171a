#include "learn/noise.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/rng.h"
#include "learn/constants.h"

namespace motley::learn {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 32;
constexpr std::uint64_t most_classes = 256;  // a label is a byte

LabelledPictures noise(std::uint64_t count, std::size_t pixels, std::uint64_t classes, Rng rng) {
  LabelledPictures made;
  made.pixels.resize(count * pixels);
  made.labels.resize(count);
  for (auto& pixel : made.pixels) pixel = static_cast<std::uint8_t>(rng.below(256));
  for (auto& label : made.labels) label = static_cast<std::uint8_t>(rng.below(classes));
  return made;
}

}  // namespace

Result<Pictures> make_noise(const DataSpec& spec) {
  if (spec.picture.size() != 3)
    return bad_input(fmt::format(
        "cannot make noise: found {} numbers in picture, expected channels, height and width; change [data] picture", spec.picture.size()));
  const PictureFormat format{static_cast<std::int64_t>(spec.picture[0]), static_cast<std::int64_t>(spec.picture[1]),
                             static_cast<std::int64_t>(spec.picture[2]), static_cast<std::int64_t>(spec.classes)};
  if (spec.classes < 1 || spec.classes > most_classes)
    return bad_input(
        fmt::format("cannot make noise: found {} classes, expected 1 to {}; change [data] classes", spec.classes, most_classes));
  if (format.pixels() == 0 || spec.samples > most_bytes / format.pixels())
    return bad_input(
        fmt::format("cannot make noise: found {} samples of {} bytes, expected {} bytes at most; change [data] samples or picture",
                    spec.samples, format.pixels(), most_bytes));
  return Pictures(format, noise(spec.samples, format.pixels(), spec.classes, Rng(spec.seed, "noise")),
                  noise(std::clamp<std::uint64_t>(spec.samples / 4, 1, noise_evaluation_samples), format.pixels(), spec.classes,
                        Rng(spec.seed, "noise to judge on")));
}

}  // namespace motley::learn
