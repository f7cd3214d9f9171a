// Shared links: the simulator's cut-through arithmetic, in numbers that can be checked by hand.
#include "transport/shared_link.h"

#include <gtest/gtest.h>

namespace motley::transport {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t slice = 10'000;  // bytes: 10 ms at `slow`, 5 ms at twice that
constexpr double slow = 1e6;
constexpr SharedLink::Instant start{};

SharedLinks made_of(std::initializer_list<double> rates) {
  SharedLinks shared_links;
  for (const double rate : rates) shared_links.push_back(std::make_shared<SharedLink>(rate));
  return shared_links;
}

TEST(SharedLink, Is_first_in_first_out) {
  SharedLink shared_link(slow);
  EXPECT_EQ(shared_link.take(slice, start), start + 10ms);
  EXPECT_EQ(shared_link.take(slice, start + 3ms), start + 20ms);   // behind the first
  EXPECT_EQ(shared_link.take(slice, start + 50ms), start + 60ms);  // long idle: no capacity is saved up
}

TEST(SharedLinks, Without_links_a_slice_passes_as_it_arrives) { EXPECT_EQ(through({}, slice, slow, start + 7ms), start + 7ms); }

TEST(SharedLinks, Link_faster_than_the_sender_costs_nothing) {
  EXPECT_EQ(through(made_of({2 * slow}), slice, slow, start + 10ms), start + 10ms);
}

TEST(SharedLinks, Link_slower_than_the_sender_determines_the_time) {
  const SharedLinks shared_links = made_of({slow});
  EXPECT_EQ(through(shared_links, slice, 2 * slow, start + 5ms), start + 10ms);   // first byte at 0
  EXPECT_EQ(through(shared_links, slice, 2 * slow, start + 10ms), start + 20ms);  // first byte at 5, the link is free at 10
}

TEST(SharedLinks, Chain_costs_as_much_as_its_slowest_link) {
  EXPECT_EQ(through(made_of({2 * slow, slow, 4 * slow}), slice, 2 * slow, start + 5ms), start + 10ms);
}

TEST(SharedLinks, Two_senders_share_a_link_of_twice_their_rate) {
  const SharedLinks card = made_of({2 * slow});
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 10ms);
  EXPECT_EQ(through(card, slice, slow, start + 10ms), start + 15ms);  // a third sender exceeds the rate
}

TEST(SharedLinks, Unknown_arrival_rate_counts_as_each_links_rate) {
  const SharedLinks shared_links = made_of({slow, 2 * slow});
  EXPECT_EQ(through(shared_links, slice, 0, start + 10ms), start + 10ms);
  EXPECT_EQ(through(shared_links, slice, 0, start + 12ms), start + 20ms);
}

}  // namespace
}  // namespace motley::transport
