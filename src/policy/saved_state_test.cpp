// A strategy resumes only from what it has saved itself: every name, no other, every value of its type and in its range.
#include "policy/saved_state.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "policy/strategies.h"

namespace motley::policy {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

TEST(SavedState, ValuesOutOfTheirRangeAreRefusedByName) {
  for (const double bad : {-1.0, 11.0, infinite, -infinite, std::nan("")}) {
    const SavedState state{{"loss", bad}, {"updates", std::uint64_t{3}}};
    StateReader reader(state);
    EXPECT_EQ(reader.count("updates", 10), 3U);
    EXPECT_EQ(reader.number("loss", 0, 10), 0);
    ASSERT_FALSE(reader.finish().ok()) << bad;
    EXPECT_EQ(reader.finish().error().message.rfind("loss: found", 0), 0U) << reader.finish().error().message;
  }
  const SavedState state{{"updates", std::uint64_t{11}}};
  StateReader reader(state);
  EXPECT_EQ(reader.count("updates", 10), 0U);
  EXPECT_FALSE(reader.finish().ok());
}

TEST(SavedState, ValuesOfAnotherTypeAreRefused) {
  const SavedState state{{"loss", std::uint64_t{3}}, {"updates", 3.0}};
  StateReader numbers(state);
  EXPECT_EQ(numbers.number("loss"), 0);
  EXPECT_FALSE(numbers.finish().ok());
  StateReader counts(state);
  EXPECT_EQ(counts.count("updates"), 0U);
  EXPECT_FALSE(counts.finish().ok());
}

TEST(SavedState, NothingIsReadAfterTheFirstFault) {
  const SavedState state{{"loss", 1.5}};
  StateReader reader(state);
  EXPECT_EQ(reader.count("updates"), 0U);
  EXPECT_EQ(reader.number("loss"), 0);
  EXPECT_EQ(reader.finish().error().message, "updates: found nothing of this name, which this strategy saves");
}

TEST(SavedState, ANameIsWrittenOnce) {
  SavedState state;
  StateWriter writer(state);
  writer.number("loss", 1);
  EXPECT_THROW(writer.count("loss", 1), Bug);
}

Strategy strategy(std::string_view kind) {
  auto made = make_strategy({.kind = std::string(kind), .knobs = {}, .batches = {}}, {});
  EXPECT_TRUE(made.ok());
  return std::move(*made);
}

TEST(SavedState, EveryStrategyNamesWhatIsMissingOrUnknown) {
  for (const std::string_view kind : strategy_names()) {
    const SavedState good = strategy(kind).save();
    EXPECT_TRUE(strategy(kind).restore(good).ok()) << kind;
    for (const auto& [name, value] : good) {
      SavedState state = good;
      state.erase(name);
      const Outcome missing = strategy(kind).restore(state);
      ASSERT_FALSE(missing.ok()) << kind << " without " << name;
      EXPECT_NE(missing.error().message.find(name), std::string::npos) << missing.error().message;
    }
    SavedState state = good;
    state.emplace("unheard.of", 1.0);
    const Outcome unknown = strategy(kind).restore(state);
    ASSERT_FALSE(unknown.ok()) << kind;
    EXPECT_NE(unknown.error().message.find("unheard.of"), std::string::npos) << unknown.error().message;
  }
}

TEST(SavedState, EveryStrategyRefusesNumbersThatAreNotFinite) {
  for (const std::string_view kind : strategy_names()) {
    const SavedState good = strategy(kind).save();
    for (const auto& [name, value] : good)
      for (const double bad : {infinite, -infinite, std::nan("")}) {
        SavedState state = good;
        state[name] = bad;
        EXPECT_FALSE(strategy(kind).restore(state).ok()) << kind << ", " << name << ": " << bad;
      }
  }
}

}  // namespace
}  // namespace motley::policy
