// For tests: small data sets, made in memory from a seed.
#pragma once
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "base/rng.h"
#include "learn/dataset.h"

namespace motley::learn {

/// Pictures whose brightness hints at their class, so that a model can learn them.
inline LabelledPictures random_pictures(const PictureFormat& format, std::size_t count, Rng rng) {
  LabelledPictures made;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t label = rng.below(static_cast<std::uint64_t>(format.classes));
    made.labels.push_back(static_cast<std::uint8_t>(label));
    for (std::size_t p = 0; p < format.pixels(); ++p)
      made.pixels.push_back(static_cast<std::uint8_t>(rng.below(128) + 127 * label / static_cast<std::uint64_t>(format.classes)));
  }
  return made;
}

inline std::shared_ptr<const DataSet> small_pictures(std::size_t training = 64, std::size_t evaluation = 150, std::int64_t side = 8) {
  const PictureFormat format{2, side, side, 3};
  return std::make_shared<InMemoryDataSet>(
      Pictures(format, random_pictures(format, training, Rng(1, "training")), random_pictures(format, evaluation, Rng(1, "evaluation"))));
}

/// A text of period 7: each character tells the next.
inline std::shared_ptr<const DataSet> small_text(std::uint64_t context = 6) {
  Text text{context, 7, {}, {}};
  for (std::uint8_t i = 0; i < 200; ++i) text.training.push_back(i % 7);
  for (std::uint8_t i = 0; i < 60; ++i) text.evaluation.push_back(i % 7);
  return std::make_shared<InMemoryDataSet>(std::move(text));
}

inline std::vector<std::uint32_t> samples_from(std::uint32_t first, std::uint32_t count) {
  std::vector<std::uint32_t> samples(count);
  std::iota(samples.begin(), samples.end(), first);
  return samples;
}

}  // namespace motley::learn
