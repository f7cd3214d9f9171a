// The page of messages: complete, and told when it is not.
#include "wire/wire_reference.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace motley::wire {
namespace {

TEST(WireReference, Every_message_and_field_has_one_meaning) {
  for (const std::string& misfit : misfits(meanings())) ADD_FAILURE() << "wire_meanings.cpp: " << misfit;
}

TEST(WireReference, Missing_and_stray_meanings_are_named) {
  std::vector<Meaning> table = meanings();
  std::erase_if(table, [](const Meaning& row) { return row.name == "Order.step"; });
  table.push_back({"Order.colour", "no such field"});
  table.push_back({"Order", "a second meaning"});
  const auto found = misfits(table);
  ASSERT_EQ(found.size(), 3U);
  for (const char* name : {"Order.step: no meaning", "Order.colour: a meaning without", "Order: two meanings"})
    EXPECT_TRUE(std::any_of(found.begin(), found.end(), [&](const std::string& line) { return line.starts_with(name); })) << name;
}

TEST(WireReference, A_message_names_its_senders_and_types) {
  const std::string page = wire_reference();
  EXPECT_NE(page.find("Sent on the control lane, from a chief to a worker."), std::string::npos);
  EXPECT_NE(page.find("| `lease` | Lease |"), std::string::npos);
  EXPECT_NE(page.find("| `limit` | duration |"), std::string::npos);
  EXPECT_NE(page.find("| `parts` | list of Part |"), std::string::npos);
  EXPECT_EQ(page.find("Sent on the ."), std::string::npos) << "a message that no peer may send";
}

}  // namespace
}  // namespace motley::wire
