// The outbox: urgent messages first, fair among equals, no starvation.
#include "transport/outbox.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace motley::transport {
namespace {

constexpr std::uint32_t never = 1'000'000;

struct Sent {
  std::uint32_t priority;
  std::uint64_t ticket;
};

Outbox outbox_with(const std::vector<Sent>& bulk_messages, std::uint32_t overtakes = never) {
  Outbox outbox(overtakes);
  for (const Sent& sent : bulk_messages) outbox.push({wire::Push{}, {}, sent.priority, sent.ticket});
  return outbox;
}

std::vector<std::uint64_t> emptied(Outbox outbox) {
  std::vector<std::uint64_t> tickets;
  while (!outbox.empty()) {
    const std::uint64_t announced = outbox.next().ticket;
    tickets.push_back(outbox.pop().ticket);
    EXPECT_EQ(tickets.back(), announced);
  }
  return tickets;
}

using Tickets = std::vector<std::uint64_t>;

TEST(Outbox, Low_priority_numbers_go_first) { EXPECT_EQ(emptied(outbox_with({{3, 1}, {1, 2}, {2, 3}})), (Tickets{2, 3, 1})); }

TEST(Outbox, Equal_priorities_keep_their_order) {
  EXPECT_EQ(emptied(outbox_with({{1, 1}, {0, 2}, {1, 3}, {0, 4}, {1, 5}})), (Tickets{2, 4, 1, 3, 5}));
}

TEST(Outbox, Message_overtaken_often_enough_goes_next) {
  EXPECT_EQ(emptied(outbox_with({{9, 1}, {8, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}}, 2)), (Tickets{3, 4, 1, 5, 6, 2}));
}

TEST(Outbox, Urgent_messages_do_not_starve_the_others) {
  Outbox outbox = outbox_with({{9, 1'000}, {9, 1'001}}, 64);
  Tickets tickets;
  for (std::uint64_t ticket = 0; ticket < 130; ++ticket) {
    outbox.push({wire::Push{}, {}, 0, ticket});
    tickets.push_back(outbox.pop().ticket);
  }
  EXPECT_EQ(tickets[64], 1'000U);
  EXPECT_EQ(tickets[129], 1'001U);
}

TEST(Outbox, Counts_the_waiting_payload) {
  const std::array<std::byte, 100> memory{};
  Outbox outbox(never);
  outbox.push({wire::Push{}, memory, 0, 1});
  outbox.push({wire::Push{}, std::span(memory).first(20), 1, 2});
  EXPECT_EQ(outbox.payload_bytes(), 120U);
  outbox.pop();
  EXPECT_EQ(outbox.payload_bytes(), 20U);
  outbox.clear();
  EXPECT_EQ(outbox.payload_bytes(), 0U);
  EXPECT_EQ(outbox.size(), 0U);
}

TEST(Outbox, Empty_outbox_has_no_next_message) {
  Outbox outbox(never);
  EXPECT_THROW(outbox.pop(), Bug);
}

}  // namespace
}  // namespace motley::transport
