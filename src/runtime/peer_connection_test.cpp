// The messages that a connection delivers and refuses, how long it keeps memory, and how often an expulsion is logged.
#include "runtime/peer_connection.h"

#include <gtest/gtest.h>

#include "runtime/expulsions.h"
#include "runtime/fake_connection_for_tests.h"

namespace motley::runtime {
namespace {

class PeerConnections : public testing::Test, public PeerOwner {
 protected:
  PeerConnections() {
    auto made = std::make_unique<FakeConnection>();
    fake = made.get();
    peer = std::make_unique<PeerConnection>(std::move(made), io, transport::Options{}, *this);
    peer->start();
  }
  wire::Objection objection(const PeerConnection&, wire::Lane, const wire::Message&) const override { return refusal; }
  void expel(PeerConnection& from, const std::string& why) override {
    expulsions.expel(from, Expulsions::Peer::identified, "worker 3", why);
  }
  void on_message(PeerConnection&, wire::Message message) override { messages.push_back(std::move(message)); }
  std::span<std::byte> receive_buffer(PeerConnection& from, const wire::Message&, std::size_t bytes) override {
    return memory ? from.receive_into(*memory, memory) : from.discard(bytes);
  }
  void received(PeerConnection& from, const wire::Message&) override { received_memory = from.take_received().memory; }
  void closed(PeerConnection&, const Error& why) override { ended = why.message; }

  std::span<std::byte> announce(std::size_t bytes) { return fake->callbacks->receive_buffer(*fake, wire::Push{}, bytes); }

  boost::asio::io_context io;
  std::vector<std::string> log;
  Expulsions expulsions{io, [this](const std::string& line) { log.push_back(line); }};
  wire::Objection refusal;
  std::vector<wire::Message> messages;
  std::shared_ptr<std::vector<std::byte>> memory;
  std::shared_ptr<void> received_memory;
  std::string ended;
  FakeConnection* fake = nullptr;
  std::unique_ptr<PeerConnection> peer;
};

TEST_F(PeerConnections, Delivers_messages_without_objection) {
  fake->callbacks->on_message(*fake, wire::Stop{});
  EXPECT_EQ(messages.size(), 1U);
  fake->callbacks->closed(*fake, world_failed("gone"));
  EXPECT_EQ(ended, "gone");
}

TEST_F(PeerConnections, Expels_once_when_messages_break_the_protocol) {
  refusal = "it is too early";
  fake->callbacks->on_message(*fake, wire::Stop{});
  fake->callbacks->on_message(*fake, wire::Stop{});
  EXPECT_TRUE(announce(8).empty());
  EXPECT_TRUE(messages.empty());
  EXPECT_TRUE(peer->is_closing());
  EXPECT_EQ(fake->closed_with, std::vector<std::string>{"it is too early"});
  EXPECT_EQ(log, std::vector<std::string>{"expelled worker 3 at nowhere: it is too early"});
}

TEST_F(PeerConnections, Refuses_payloads_that_break_the_protocol) {
  refusal = "there is no slice 9";
  EXPECT_FALSE(fake->callbacks->accept_in_place(*fake, wire::Push{}, {}, nullptr));
  EXPECT_FALSE(peer->is_closing()) << "receive_buffer() follows and expels";
  EXPECT_TRUE(announce(8).empty());
  EXPECT_TRUE(peer->is_closing());
}

TEST_F(PeerConnections, Keeps_sent_memory_until_the_transport_has_read_it) {
  auto payload = std::make_shared<std::vector<std::byte>>(8);
  const std::weak_ptr<std::vector<std::byte>> watch = payload;
  const transport::BulkMessage message{.head = wire::Push{}, .payload = *payload};
  peer->send_payload(message, std::move(payload));
  ASSERT_EQ(fake->bulk_messages.size(), 1U);
  EXPECT_TRUE(peer->sending());
  EXPECT_FALSE(watch.expired());
  fake->callbacks->sent(*fake, fake->bulk_messages[0].ticket);
  EXPECT_FALSE(peer->sending());
  EXPECT_TRUE(watch.expired());
}

TEST_F(PeerConnections, Keeps_memory_of_a_payload_that_never_completes) {
  memory = std::make_shared<std::vector<std::byte>>(8);
  const std::weak_ptr<std::vector<std::byte>> watch = memory;
  EXPECT_EQ(announce(8).data(), memory->data());
  memory.reset();
  EXPECT_FALSE(watch.expired());
  peer.reset();
  EXPECT_TRUE(watch.expired());
}

TEST_F(PeerConnections, Hands_received_memory_back_unless_it_was_discarded) {
  memory = std::make_shared<std::vector<std::byte>>(8);
  announce(8);
  fake->callbacks->received(*fake, wire::Push{});
  EXPECT_EQ(received_memory, memory);
  memory.reset();
  EXPECT_EQ(announce(16).size(), 16U);
  fake->callbacks->received(*fake, wire::Push{});
  EXPECT_EQ(received_memory, nullptr);
}

}  // namespace
}  // namespace motley::runtime
