#include "base/registry.h"

#include <gtest/gtest.h>

namespace motley {
namespace {

using Numbers = Registry<int (*)()>;
Numbers numbers() {
  return Numbers({{"one", [] { return 1; }}, {"two", [] { return 2; }}});
}

TEST(Registry, Finds_built_in_and_added_entries) {
  Numbers registry = numbers();
  registry.add("three", [] { return 3; });
  EXPECT_EQ((*registry.find("two"))(), 2);
  EXPECT_EQ((*registry.find("three"))(), 3);
  EXPECT_EQ(registry.find("four"), nullptr);
}

TEST(Registry, Lists_names_in_order_of_registration) {
  Numbers registry = numbers();
  registry.add("a", [] { return 3; });
  EXPECT_EQ(registry.names(), (std::vector<std::string>{"one", "two", "a"}));
  EXPECT_EQ(registry.list(), "one, two or a");
}

TEST(Registry, Refuses_a_name_that_is_taken_or_reserved) {
  Numbers registry = numbers();
  EXPECT_THROW(registry.add("one", [] { return 1; }), Bug);
  EXPECT_THROW(registry.add("none", [] { return 1; }), Bug);
}

}  // namespace
}  // namespace motley
