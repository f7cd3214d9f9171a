// For this room's tests: a connection that only remembers what it was given.
#pragma once
#include <string>
#include <vector>

#include "transport/transport.h"

namespace motley::runtime {

class FakeConnection : public transport::Connection {
 public:
  std::vector<wire::Message> messages;
  std::vector<transport::BulkMessage> bulk_messages;

  void start(transport::ConnectionCallbacks&) override {}
  void send(const wire::Message& message) override { messages.push_back(message); }
  void send(const transport::BulkMessage& bulk_message) override { bulk_messages.push_back(bulk_message); }
  void hold() override {}
  void resume() override {}
  void close(const std::string&) override {}
  void abandon(const std::string&) override {}
  [[nodiscard]] const std::string& peer() const override { return peer_; }
  [[nodiscard]] transport::Queued queued() const override { return {}; }

 private:
  std::string peer_ = "nowhere";
};

}  // namespace motley::runtime
