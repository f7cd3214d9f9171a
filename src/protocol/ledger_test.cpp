// The ledger compared with a slow clear twin: one state per position, examined one by one.
#include "protocol/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "base/rng.h"

namespace motley::protocol {
namespace {

Lease lease(std::initializer_list<Range> ranges) {
  Lease result;
  result.ranges.assign(ranges.begin(), ranges.end());
  return result;
}

/// Free, leased or counted, for every position of every epoch.
class PositionByPosition {
 public:
  PositionByPosition(std::uint64_t epoch, std::uint64_t total) : epoch_(epoch), states_(total, State::never) {}

  /// The positions that must be granted: returned ones first, then fresh ones, each in order.
  std::vector<std::uint64_t> grant(std::uint64_t samples) {
    std::vector<std::uint64_t> granted;
    for (const State wanted : {State::returned, State::never})
      for (std::uint64_t p = 0; p < states_.size() && granted.size() < samples; ++p)
        if (states_[p] == wanted) {
          states_[p] = State::leased;
          granted.push_back(p);
        }
    return granted;
  }
  void count(const Lease& lease) { turn(lease, State::counted); }
  void give_back(const Lease& lease) { turn(lease, State::returned); }

  [[nodiscard]] std::vector<std::uint64_t> positions(const Lease& lease) const {
    std::vector<std::uint64_t> result;
    for (const Range& range : lease.ranges)
      for (std::uint64_t p = range.first; p < range.last; ++p) result.push_back(range.epoch * epoch_ + p);
    return result;
  }
  [[nodiscard]] std::uint64_t counted() const { return number_of(State::counted); }
  [[nodiscard]] std::uint64_t leased() const { return number_of(State::leased); }
  [[nodiscard]] std::uint32_t closed_epochs() const {
    const auto first_open = std::find_if(states_.begin(), states_.end(), [](State state) { return state != State::counted; });
    return static_cast<std::uint32_t>(static_cast<std::uint64_t>(first_open - states_.begin()) / epoch_);
  }

 private:
  enum class State { never, returned, leased, counted };
  void turn(const Lease& lease, State state) {
    for (const std::uint64_t p : positions(lease)) {
      ASSERT_EQ(states_[p], State::leased) << "position " << p;
      states_[p] = state;
    }
  }
  [[nodiscard]] std::uint64_t number_of(State state) const {
    return static_cast<std::uint64_t>(std::count(states_.begin(), states_.end(), state));
  }
  std::uint64_t epoch_;
  std::vector<State> states_;
};

TEST(Ledger, Agrees_with_one_state_per_position) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Rng rng(seed, "ledger");
    const std::uint64_t epoch = 5 + rng.below(40);
    const std::uint64_t total = epoch * (1 + rng.below(5)) + rng.below(epoch);
    Ledger ledger(epoch, total);
    PositionByPosition twin(epoch, total);
    std::vector<Lease> out;
    while (!ledger.complete()) {
      const std::uint64_t dice = rng.below(10);
      if (dice < 5 || out.empty()) {
        const std::uint64_t wanted = 1 + rng.below(rng.below(6) == 0 ? 2 * epoch : 6);
        const Lease granted = ledger.grant(wanted);
        ASSERT_EQ(twin.positions(granted), twin.grant(wanted));
        for (const Range& range : granted.ranges) ASSERT_TRUE(range.first < range.last && range.last <= epoch);
        if (!granted.empty()) out.push_back(granted);
      } else {
        const auto chosen = out.begin() + static_cast<std::ptrdiff_t>(rng.below(out.size()));
        dice < 8 ? ledger.count(*chosen) : ledger.give_back(*chosen);
        dice < 8 ? twin.count(*chosen) : twin.give_back(*chosen);
        out.erase(chosen);
      }
      ASSERT_EQ(ledger.counted(), twin.counted());
      ASSERT_EQ(ledger.leased(), twin.leased());
      ASSERT_EQ(ledger.closed_epochs(), twin.closed_epochs());
    }
    EXPECT_EQ(ledger.counted(), total);
  }
}

TEST(Ledger, Lease_may_contain_two_epochs) {
  Ledger ledger(10, 30);
  EXPECT_EQ(ledger.grant(8), lease({{0, 0, 8}}));
  EXPECT_EQ(ledger.grant(8), lease({{0, 8, 10}, {1, 0, 6}}));
  EXPECT_EQ(ledger.grant(20), lease({{1, 6, 10}, {2, 0, 10}}));
  EXPECT_TRUE(ledger.grant(1).empty());
}

TEST(Ledger, Later_epoch_may_be_counted_before_an_earlier_is_closed) {
  Ledger ledger(4, 8);
  const Lease first = ledger.grant(4);
  const Lease second = ledger.grant(4);
  ledger.count(second);
  EXPECT_EQ(ledger.closed_epochs(), 0U);
  ledger.count(first);
  EXPECT_EQ(ledger.closed_epochs(), 2U);
  EXPECT_TRUE(ledger.complete());
}

TEST(Ledger, Returned_positions_are_granted_first) {
  Ledger ledger(100, 100);
  const Lease first = ledger.grant(10);
  (void)ledger.grant(10);
  ledger.give_back(first);
  EXPECT_EQ(ledger.grant(4), lease({{0, 0, 4}}));
  EXPECT_EQ(ledger.grant(16), lease({{0, 4, 10}, {0, 20, 30}}));
}

TEST(Ledger, Truncated_epoch_is_not_closed) {
  Ledger ledger(10, 15);
  ledger.count(ledger.grant(15));
  EXPECT_TRUE(ledger.complete());
  EXPECT_EQ(ledger.closed_epochs(), 1U);
}

TEST(LedgerOfShards, Worker_gets_its_own_part_of_every_epoch) {
  Ledger ledger(100, 200, 4);
  EXPECT_EQ(ledger.grant(10, 1), lease({{0, 25, 35}}));
  EXPECT_EQ(ledger.grant(10, 0), lease({{0, 0, 10}}));
  EXPECT_EQ(ledger.grant(20, 1), lease({{0, 35, 50}, {1, 25, 30}})) << "the next epoch follows at once";
}

TEST(LedgerOfShards, Worker_with_a_finished_shard_gets_others) {
  Ledger ledger(100, 100, 2);
  EXPECT_EQ(ledger.grant(50, 1), lease({{0, 50, 100}}));
  EXPECT_EQ(ledger.grant(10, 1), lease({{0, 0, 10}}));
}

TEST(LedgerOfShards, Returned_positions_belong_to_their_shard) {
  Ledger ledger(100, 100, 2);
  const Lease mine = ledger.grant(10, 1);
  (void)ledger.grant(10, 1);
  ledger.give_back(mine);
  EXPECT_EQ(ledger.grant(10, 0), lease({{0, 0, 10}}));
  EXPECT_EQ(ledger.grant(10, 1), mine);
}

TEST(LedgerOfShards, Every_position_is_granted_once) {
  Rng rng(5, "shards");
  for (int trial = 0; trial < 50; ++trial) {
    const std::uint64_t epoch = 1 + rng.below(40);
    const std::uint64_t total = 1 + rng.below(100);
    Ledger ledger(epoch, total, 1 + static_cast<std::uint32_t>(rng.below(5)));
    std::vector<Lease> out;
    while (!ledger.complete()) {
      Lease granted = ledger.grant(1 + rng.below(9), static_cast<std::uint32_t>(rng.below(8)));
      if (!granted.empty()) out.push_back(std::move(granted));
      if (out.empty()) continue;
      const std::size_t pick = rng.below(out.size());
      rng.below(3) == 0 ? ledger.give_back(out[pick]) : ledger.count(out[pick]);  // counting twice would throw
      out.erase(out.begin() + static_cast<std::ptrdiff_t>(pick));
    }
    EXPECT_EQ(ledger.counted(), total);
  }
}

TEST(LedgerOfShards, Continues_from_a_checkpoint) {
  Ledger ledger(100, 200, 2);
  ASSERT_TRUE(ledger.restore({{0, 20}, {50, 60}}));
  EXPECT_EQ(ledger.grant(5, 1), lease({{0, 60, 65}}));
  EXPECT_EQ(ledger.grant(5, 0), lease({{0, 20, 25}}));
}

TEST(Ledger, Counting_twice_is_a_bug) {
  Ledger ledger(100, 100);
  const Lease first = ledger.grant(10);
  (void)ledger.grant(50);
  ledger.count(first);
  EXPECT_THROW(ledger.count(first), Bug);
  EXPECT_THROW(ledger.count(lease({{0, 5, 15}})), Bug) << "half of it";
}

TEST(Ledger, Returning_twice_is_a_bug) {
  Ledger ledger(100, 100);
  const Lease first = ledger.grant(10);
  (void)ledger.grant(50);
  ledger.give_back(first);
  EXPECT_THROW(ledger.give_back(first), Bug);
}

TEST(Ledger, Counting_without_a_lease_is_a_bug) {
  Ledger ledger(100, 100);
  EXPECT_THROW(ledger.count(lease({{0, 0, 1}})), Bug);
  EXPECT_THROW(ledger.count(Lease{}), Bug);
}

}  // namespace
}  // namespace motley::protocol
