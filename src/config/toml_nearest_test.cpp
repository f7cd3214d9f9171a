// Suggestions for mistyped words.
#include "config/toml_nearest.h"

#include <gtest/gtest.h>

#include <vector>

namespace motley::config {
namespace {

TEST(Nearest, Counts_insertions_deletions_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("steps", "steps"), 0U);
  EXPECT_EQ(edit_distance("step", "steps"), 1U);
  EXPECT_EQ(edit_distance("setps", "steps"), 1U);
  EXPECT_EQ(edit_distance("", "abc"), 3U);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

TEST(Nearest, Suggests_the_most_similar_word) {
  const std::vector<std::string> keys{"max_epochs", "max_seconds", "name", "seed"};
  EXPECT_EQ(nearest("max_epoch", keys), "max_epochs");
  EXPECT_EQ(nearest("sede", keys), "seed");
  EXPECT_EQ(did_you_mean("nane", keys), "; did you mean name?");
}

TEST(Nearest, Suggests_nothing_when_no_word_is_similar) {
  const std::vector<std::string> keys{"max_epochs", "seed"};
  EXPECT_FALSE(nearest("bandwidth", keys));
  EXPECT_EQ(did_you_mean(std::string(10'000, 'x'), keys), "");
}

}  // namespace
}  // namespace motley::config
