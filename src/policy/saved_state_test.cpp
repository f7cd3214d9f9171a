// A strategy goes on only from what it has saved itself: nothing missing, nothing more, every number in its range.
#include "policy/saved_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "policy/strategies.h"

namespace motley::policy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(SavedState, ANumberOutOfItsRangeMakesAllOfItBad) {
  for (const double bad : {-1.0, 2.5, 11.0, infinite, -infinite, std::nan(""), 1e300}) {
    const std::vector<double> numbers{3, bad};
    SavedState state(numbers);
    EXPECT_EQ(state.count(10), 3U);
    EXPECT_EQ(state.count(10), 0U);
    EXPECT_FALSE(state.all_read()) << bad;
  }
}

Strategy strategy(std::string_view kind) {
  auto made = make_strategy({.kind = std::string(kind), .knobs = {}, .batches = {}}, {});
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

TEST(SavedState, EveryStrategyRefusesAnyOtherNumberOfNumbers) {
  for (const std::string_view kind : strategy_names()) {
    std::vector<double> state = strategy(kind).save();
    EXPECT_TRUE(strategy(kind).restore(state)) << kind;
    state.push_back(0);
    EXPECT_FALSE(strategy(kind).restore(state)) << kind << ": one too many";
    state.resize(state.size() - 2);
    EXPECT_FALSE(strategy(kind).restore(state)) << kind << ": one is missing";
    EXPECT_FALSE(strategy(kind).restore({})) << kind << ": nothing";
  }
}

TEST(SavedState, EveryStrategyRefusesWhatIsNoNumber) {
  for (const std::string_view kind : strategy_names()) {
    const std::vector<double> good = strategy(kind).save();
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const double bad : {infinite, -infinite, std::nan("")}) {
        std::vector<double> state = good;
        state[i] = bad;
        EXPECT_FALSE(strategy(kind).restore(state)) << kind << ", number " << i << ": " << bad;
      }
  }
}

}  // namespace
}  // namespace motley::policy
