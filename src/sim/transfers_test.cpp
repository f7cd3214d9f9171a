#include "sim/transfers.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

namespace motley::sim {
namespace {

constexpr double latency_s = 0.01;

class TransfersBetweenTwoNodes : public testing::Test {
 protected:
  TransfersBetweenTwoNodes() {
    spec_.nodes.resize(2);
    for (cluster::Node& node : spec_.nodes) node.link = {from_seconds(latency_s), 1000, 1000};
    spec_.server_nic = {{}, 1e6, 1e6};
    layout_ = store::cut(std::vector<store::TensorPlace>{{0, 100, TensorKind::parameter}}, 4000, 1);
    transfers_.emplace(spec_, layout_, queue_);
  }
  void tick(std::uint64_t connection) {
    transfers_->send(now_, {protocol::pending_worker(0), protocol::the_chief, static_cast<std::uint32_t>(connection), wire::Stop{}},
                     node_port(0), chief_port);
  }

  cluster::Spec spec_;
  store::Layout layout_;
  EventQueue<WorldEvent> queue_;
  std::optional<Transfers> transfers_;
  Instant now_{};
};

TEST_F(TransfersBetweenTwoNodes, AControlMessageTakesTheLatency) {
  tick(7);
  const auto [when, event] = queue_.pop();
  EXPECT_EQ(when, at_seconds(latency_s));
  EXPECT_EQ(transfers_->take(std::get<ControlArrives>(event)).connection, 7U);
}

TEST_F(TransfersBetweenTwoNodes, MessagesInFlightAreNotMixedUp) {
  tick(1);
  tick(2);
  const auto first = std::get<ControlArrives>(queue_.pop().second);
  EXPECT_EQ(transfers_->take(first).connection, 1U);
  tick(3);  // in the slot of the first
  tick(4);
  const ControlArrives kept = transfers_->keep({protocol::the_chief, protocol::the_chief, 5, wire::Stop{}});
  for (const std::uint32_t expected : {2U, 3U, 4U})
    EXPECT_EQ(transfers_->take(std::get<ControlArrives>(queue_.pop().second)).connection, expected);
  EXPECT_EQ(transfers_->take(kept).connection, 5U);
}

TEST_F(TransfersBetweenTwoNodes, ASliceHasTheBytesOfItsCodec) {
  for (const std::uint8_t bits : {std::uint8_t{32}, std::uint8_t{16}}) {
    transfers_->send(now_, wire::Push{WorkerId{0}, Step{}, SliceId{0}, bits}, 0, 0, bits);
    std::optional<std::uint64_t> bytes;
    while (!queue_.empty()) {
      const auto [when, event] = queue_.pop();
      if (const auto* e = std::get_if<EgressFree>(&event)) transfers_->network().egress_free(when, e->egress);
      if (const auto* e = std::get_if<BulkMessageReaches>(&event)) transfers_->network().reached(when, e->bulk_message);
      if (const auto* e = std::get_if<BulkMessageArrives>(&event)) bytes = transfers_->network().arrived(when, e->bulk_message).bytes;
      now_ = when;
    }
    EXPECT_EQ(bytes, 100U * bits / 8);
  }
}

TEST_F(TransfersBetweenTwoNodes, ALossIsNoticedAfterTheCutEnds) {
  EXPECT_EQ(transfers_->loss_noticed(now_, node_port(0), chief_port), at_seconds(latency_s));
  transfers_->network().cut_off(0, at_seconds(5));
  EXPECT_EQ(transfers_->loss_noticed(now_, node_port(0), chief_port), at_seconds(5 + latency_s));
}

}  // namespace
}  // namespace motley::sim
