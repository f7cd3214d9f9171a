// The base of decorators: a connection around another one that forwards every call.
#pragma once
#include <memory>

#include "transport/transport.h"

namespace motley::transport {

/// The outer owner sees only the outermost connection, never the inner one.
class Wrapped : public Connection, protected ConnectionCallbacks {
 public:
  explicit Wrapped(std::unique_ptr<Connection> inner) : inner_(std::move(inner)) {}

  void start(ConnectionCallbacks& callbacks) override {
    callbacks_ = &callbacks;
    inner_->start(*this);
  }
  void send(const wire::Message& message) override { inner_->send(message); }
  void send(const BulkMessage& bulk_message) override { inner_->send(bulk_message); }
  void hold() override { inner_->hold(); }
  void resume() override { inner_->resume(); }
  void close(const std::string& reason) override { inner_->close(reason); }
  void abandon(const std::string& reason) override { inner_->abandon(reason); }
  [[nodiscard]] const std::string& peer() const override { return inner_->peer(); }
  [[nodiscard]] Queued queued() const override { return inner_->queued(); }

 protected:
  // Each of these may destroy this connection: members must not be used after the call.
  void on_message(Connection&, wire::Message message) override { callbacks_->on_message(*this, std::move(message)); }
  std::span<std::byte> receive_buffer(Connection&, const wire::Message& head, std::size_t bytes) override {
    return callbacks_->receive_buffer(*this, head, bytes);
  }
  void received(Connection&, const wire::Message& head) override { callbacks_->received(*this, head); }
  void sent(Connection&, std::uint64_t ticket) override { callbacks_->sent(*this, ticket); }
  void closed(Connection&, const Error& why) override { callbacks_->closed(*this, why); }

  [[nodiscard]] Connection& inner() const { return *inner_; }
  [[nodiscard]] ConnectionCallbacks& owner() const { return *callbacks_; }

 private:
  std::unique_ptr<Connection> inner_;
  ConnectionCallbacks* callbacks_ = nullptr;  // null before start()
};

}  // namespace motley::transport
