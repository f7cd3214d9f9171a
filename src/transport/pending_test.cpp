// A flood of handshakes evicts handshakes of its own source; other sources and fast clients complete.
#include "transport/pending.h"

#include <gtest/gtest.h>

#include <set>

namespace motley::transport {
namespace {

constexpr std::size_t most = 64;

/// Adds handshakes `from` to `to` of one source, removes those that the table drops, and returns them.
std::set<Pending::Id> flood(Pending& table, const std::string& source, Pending::Id from, Pending::Id to) {
  std::set<Pending::Id> dropped;
  for (Pending::Id id = from; id < to; ++id)
    if (const auto victim = table.add(id, source)) {
      dropped.insert(*victim);
      table.remove(*victim, source);
    }
  return dropped;
}

TEST(Pending, Never_holds_more_than_its_bound) {
  Pending table(most, Rng(1, "test"));
  EXPECT_EQ(flood(table, "flood", 0, 1'000).size(), 1'000 - most);
  EXPECT_EQ(table.size(), most);
}

TEST(Pending, Drops_no_handshake_below_its_bound) {
  Pending table(most, Rng(1, "test"));
  EXPECT_TRUE(flood(table, "flood", 0, most).empty());
}

TEST(Pending, Drops_the_source_with_the_most_handshakes) {
  Pending table(most, Rng(1, "test"));
  flood(table, "flood", 0, 1'000);
  for (Pending::Id honest = 10'000; honest < 10'010; ++honest) {
    const auto victim = table.add(honest, "elsewhere " + std::to_string(honest));
    ASSERT_TRUE(victim);
    EXPECT_LT(*victim, 1'000U);
    table.remove(*victim, "flood");
  }
  for (const Pending::Id dropped : flood(table, "flood", 20'000, 30'000)) EXPECT_TRUE(dropped < 1'000 || dropped >= 20'000);
  EXPECT_EQ(table.size(), most);
}

TEST(Pending, Keeps_each_handshake_while_half_the_table_fills) {
  Pending table(most, Rng(1, "test"));
  flood(table, "flood", 0, 1'000);
  for (Pending::Id id = 1'000; id < 10'000; ++id) {
    const auto victim = table.add(id, "flood");
    ASSERT_TRUE(victim);
    EXPECT_LE(*victim + most / 2, id) << "handshake " << *victim << " was dropped for " << id;
    table.remove(*victim, "flood");
  }
}

TEST(Pending, Lets_slow_handshakes_complete_sometimes) {
  constexpr int attempts = 200;
  Pending table(most, Rng(1, "test"));
  flood(table, "flood", 0, 1'000);
  Pending::Id next = 1'000;
  int survived = 0;
  for (int i = 0; i < attempts; ++i) {
    const Pending::Id slow = next++;
    flood(table, "flood", slow, slow + 1);
    const std::set<Pending::Id> dropped = flood(table, "flood", next, next + 2 * most);  // twice the size of the table
    next += 2 * most;
    survived += dropped.contains(slow) ? 0 : 1;
  }
  EXPECT_GT(survived, 0);
  EXPECT_LT(survived, attempts);
}

TEST(Pending, Has_no_victim_when_empty) {
  Pending table(most, Rng(1, "test"));
  EXPECT_FALSE(table.victim());
  EXPECT_FALSE(table.add(1, "a"));
  EXPECT_EQ(table.victim(), 1U);
  table.remove(2, "a");
  table.remove(1, "b");
  EXPECT_EQ(table.size(), 1U);
  table.remove(1, "a");
  EXPECT_FALSE(table.victim());
}

}  // namespace
}  // namespace motley::transport
