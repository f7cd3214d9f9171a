// For tests: a connection that records what it is given. A test plays the transport through `callbacks`.
#pragma once
#include <string>
#include <vector>

#include "transport/transport.h"

namespace motley::runtime {

class FakeConnection : public transport::Connection {
 public:
  std::vector<wire::Message> messages;
  std::vector<transport::BulkMessage> bulk_messages;
  std::vector<std::string> closed_with;                 // reasons
  transport::ConnectionCallbacks* callbacks = nullptr;  // null before start()

  void start(transport::ConnectionCallbacks& owner) override { callbacks = &owner; }
  void send(const wire::Message& message) override { messages.push_back(message); }
  void send(const transport::BulkMessage& bulk_message) override { bulk_messages.push_back(bulk_message); }
  void hold() override {}
  void resume() override {}
  void close(const std::string& reason) override { closed_with.push_back(reason); }
  void abandon(const std::string&) override {}
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] transport::Queued queued() const override { return {}; }

 private:
  std::string peer_ = "nowhere";
};

}  // namespace motley::runtime
