#include "learn/noise.h"

#include <gtest/gtest.h>

#include "learn/dataset.h"

namespace motley::learn {
namespace {

DataSpec spec() { return {.kind = "noise", .path = {}, .samples = 40, .classes = 100, .picture = {3, 8, 8}}; }

TEST(Noise, HasTheFormatAndTheLabelsAskedFor) {
  const auto data = load(spec());
  ASSERT_TRUE(data.ok());
  EXPECT_EQ(describe((*data)->shape()), "3x8x8 pictures of 100 classes");
  EXPECT_EQ((*data)->size(Part::training), 40U);
  EXPECT_EQ((*data)->size(Part::evaluation), 10U);
  for (const std::uint32_t label : training_labels(**data)) EXPECT_LT(label, 100U);
}

TEST(Noise, Follows_from_the_seed) {
  DataSpec other = spec();
  other.seed = 1;
  EXPECT_EQ(training_labels(**load(spec())), training_labels(**load(spec())));
  EXPECT_NE(training_labels(**load(spec())), training_labels(**load(other)));
}

TEST(Noise, Refuses_wrong_sizes) {
  DataSpec bad = spec();
  bad.classes = 300;
  EXPECT_NE(load(bad).error().message.find("found 300 classes"), std::string::npos);
  bad = spec();
  bad.picture = {3, 8};
  EXPECT_NE(load(bad).error().message.find("found 2 numbers"), std::string::npos);
  bad = spec();
  bad.samples = 1'000'000'000;
  EXPECT_NE(load(bad).error().message.find("found 1000000000 samples"), std::string::npos);
}

}  // namespace
}  // namespace motley::learn
