// For tests: a peer that knows the token and sends well-formed messages with wrong values. Fields are filled from their descriptions, so
// that new messages are covered too.
#pragma once
#include <gtest/gtest.h>

#include <array>
#include <boost/mp11.hpp>
#include <cstdio>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"
#include "transport/pairs_for_tests.h"
#include "wire/encode.h"
#include "wire/frame.h"

namespace motley::runtime {

/// Draws messages of every kind with values at and beyond the limits of their fields.
class WrongMessages {
 public:
  explicit WrongMessages(std::uint64_t seed) : rng_(seed, "wrong messages") {}

  [[nodiscard]] std::uint64_t below(std::uint64_t limit) { return rng_.bits() % limit; }

  wire::Message any() {
    constexpr std::size_t kinds = std::variant_size_v<wire::Message>;
    return boost::mp11::mp_with_index<kinds>(static_cast<std::size_t>(below(kinds)), [&](auto kind) -> wire::Message {
      std::variant_alternative_t<kind, wire::Message> message{};
      fill(message);
      return message;
    });
  }
  /// A message that can head a payload.
  wire::Message any_head() {
    switch (below(5)) {
      case 0: return filled<wire::Push>();
      case 1: return filled<wire::Pulled>();
      case 2: return filled<wire::StateChunk>();
      case 3: return filled<wire::StageSlice>();
      default: return filled<wire::ActivationSlice>();
    }
  }
  template <class T>
  T filled() {
    T message{};
    fill(message);
    return message;
  }

 private:
  template <class T>
  void fill(T& x) {
    if constexpr (std::is_enum_v<T>) {
      std::vector<T> all;
      boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto described) { all.push_back(described.value); });
      x = all[below(all.size())];
    } else if constexpr (std::same_as<T, bool>) {
      x = below(2) == 1;
    } else if constexpr (std::integral<T>) {
      const std::array<std::uint64_t, 6> edges{0, below(6), below(6), below(64), rng_.bits(), ~std::uint64_t{0}};
      x = static_cast<T>(edges[below(edges.size())]);
    } else if constexpr (std::same_as<T, double>) {
      const std::array<double, 7> edges{
          0, 1, -1, 1e300, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), rng_.uniform()};
      x = edges[below(edges.size())];
    } else if constexpr (wire::is_named_number<T>) {
      fill(x.value);
    } else if constexpr (std::same_as<T, Duration>) {
      const std::array<std::int64_t, 6> edges{
          0, 1, -1, 1'000'000'000, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()};
      x = Duration{edges[below(edges.size())]};
    } else if constexpr (std::same_as<T, std::string>) {
      const std::array<std::string, 9> edges{
          "", "node-9", "node-8", "node-7", "server 1", "127.0.0.1:1", "unix:/nowhere", "\x1b[2J\r\n", std::string(5'000, 'x')};
      x = edges[below(edges.size())];
    } else if constexpr (wire::List<T>) {
      x.resize(below(16) == 0 ? 300 : below(4));
      for (auto& item : x) fill(item);
    } else {
      boost::mp11::mp_for_each<wire::Members<T>>([&](auto member) { fill(x.*member.pointer); });
      if constexpr (std::same_as<T, Range>)
        if (x.last < x.first) std::swap(x.first, x.last);  // well-formed requires it
    }
  }
  Rng rng_;
};

/// The peer end of a connection; opens a new one when it was closed.
class WrongPeer : public transport::ConnectionCallbacks {
 public:
  WrongPeer(boost::asio::io_context& io, transport::Options options) : io_(io), options_(std::move(options)) {}

  std::vector<wire::Message> received_messages;  // on the current connection
  std::size_t closings = 0;
  std::string why;  // reason of the last close

  [[nodiscard]] bool connected() const { return connection_ != nullptr && !closed_; }
  void connect(const transport::Address& address) {
    hang_up();
    auto opened = transport::connect_now(io_, address, options_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    take(std::move(*opened));
  }
  /// Over loopback, for speed.
  void connect(transport::AcceptCallbacks& accept_callbacks) {
    auto [here, there] = transport::loopback(io_, options_);
    take(std::move(here));
    accept_callbacks.accepted(std::move(there));
  }
  void take(std::unique_ptr<transport::Connection> connection) {
    hang_up();
    connection_ = std::move(connection);
    connection_->start(*this);
  }
  void hang_up() {
    connection_.reset();
    received_messages.clear();
    closed_ = false;
  }
  void say(const wire::Message& message) {
    if (connected() && wire::encoded_bytes(message) < 1 << 20) connection_->send(message);
  }
  void send(const wire::Message& head, std::size_t bytes) {
    if (connected() && wire::encoded_bytes(head) < 256)
      connection_->send(transport::BulkMessage{head, std::span(zeros_).first(bytes), 0, 0});
  }
  /// Sends one frame, drawn from `messages`, on either lane.
  void send_wrong(WrongMessages& messages) {
    constexpr std::array<std::size_t, 8> sizes{0, 0, 1, 4, 12, 16, 1'000, 65'536};
    if (messages.below(3) == 0)
      send(messages.any_head(), sizes[messages.below(sizes.size())]);
    else
      say(messages.any());
  }

 private:
  void on_message(transport::Connection&, wire::Message message) override {
    if (received_messages.size() < 100) received_messages.push_back(std::move(message));
  }
  std::span<std::byte> receive_buffer(transport::Connection&, const wire::Message&, std::size_t bytes) override {
    discarded_bytes_.resize(bytes);
    return discarded_bytes_;
  }
  void received(transport::Connection&, const wire::Message&) override {}
  void sent(transport::Connection&, std::uint64_t) override {}
  void closed(transport::Connection&, const Error& reason) override {
    closed_ = true;
    ++closings;
    why = reason.message;
  }

  boost::asio::io_context& io_;
  transport::Options options_;
  std::unique_ptr<transport::Connection> connection_;
  bool closed_ = false;
  std::vector<std::byte> zeros_ = std::vector<std::byte>(65'536);
  std::vector<std::byte> discarded_bytes_;
};

/// Resident memory of this process, in bytes.
inline std::size_t resident_bytes() {
  std::size_t pages = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
  std::fclose(file);
  return pages * 4096;
}

}  // namespace motley::runtime
