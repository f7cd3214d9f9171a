// A connection around a connection, passing everything on: what a decorator does not change, it inherits from here.
#pragma once
#include <memory>

#include "transport/transport.h"

namespace motley::transport {

/// The outer owner sees only the outermost connection; the inner one is never named to it.
class Wrapped : public Connection, protected Hears {
 public:
  explicit Wrapped(std::unique_ptr<Connection> inner) : inner_(std::move(inner)) {}

  void start(Hears& hears) override {
    hears_ = &hears;
    inner_->start(*this);
  }
  void send(const wire::Message& message) override { inner_->send(message); }
  void send(const Parcel& parcel) override { inner_->send(parcel); }
  void hold() override { inner_->hold(); }
  void resume() override { inner_->resume(); }
  void close(const std::string& reason) override { inner_->close(reason); }
  void abandon(const std::string& reason) override { inner_->abandon(reason); }
  [[nodiscard]] const std::string& peer() const override { return inner_->peer(); }
  [[nodiscard]] Queued queued() const override { return inner_->queued(); }

 protected:
  // Each of these may end with this connection destroyed: nothing is touched after the call.
  void heard(Connection&, wire::Message message) override { hears_->heard(*this, std::move(message)); }
  std::span<std::byte> room(Connection&, const wire::Message& head, std::size_t bytes) override { return hears_->room(*this, head, bytes); }
  void received(Connection&, const wire::Message& head) override { hears_->received(*this, head); }
  void sent(Connection&, std::uint64_t ticket) override { hears_->sent(*this, ticket); }
  void closed(Connection&, const Error& why) override { hears_->closed(*this, why); }

  [[nodiscard]] Connection& inner() const { return *inner_; }
  [[nodiscard]] Hears& owner() const { return *hears_; }

 private:
  std::unique_ptr<Connection> inner_;
  Hears* hears_ = nullptr;  // null before start()
};

}  // namespace motley::transport
