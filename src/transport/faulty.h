// A decorator that makes any connection fail at a planned byte, to test the modules above. It never alters or duplicates data, as TCP
// does not.
#pragma once
#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "base/rng.h"
#include "transport/anchor.h"
#include "transport/delay_line.h"
#include "transport/wrapped.h"

namespace motley::transport {

/// Bytes are those of messages and payloads together, from the start of the connection.
struct Faults {
  std::optional<std::uint64_t> cut_sending_at{};  // the connection breaks as this byte is handed over
  std::optional<std::uint64_t>
      cut_receiving_at{};  // ... as this byte arrives: for a slice, between its receive_buffer() and its received()
  std::optional<std::uint64_t> stall_sending_at{};  // from this byte on nothing is sent, without an error: a hung peer
  std::chrono::nanoseconds longest_delay{0};        // each message and slice is delayed by a random part of this; the order is kept
};

class Faulty final : public Wrapped {
 public:
  Faulty(std::unique_ptr<Connection> inner, const boost::asio::any_io_executor& executor, const Faults& faults, Rng rng);

  void send(const wire::Message& message) override;
  void send(const BulkMessage& bulk_message) override;
  void close(const std::string& reason) override;
  void abandon(const std::string& reason) override;

 private:
  void on_message(Connection& inner, wire::Message message) override;
  std::span<std::byte> receive_buffer(Connection& inner, const wire::Message& head, std::size_t bytes) override;
  void received(Connection& inner, const wire::Message& head) override;
  void sent(Connection& inner, std::uint64_t ticket) override;

  template <class Thing>
  void pass(const Thing& thing, std::size_t bytes);
  std::chrono::nanoseconds some_delay();
  void cut_soon(const char* where);

  Faults faults_;
  Rng rng_;
  boost::asio::any_io_executor executor_;
  std::uint64_t bytes_sent_ = 0;
  std::uint64_t bytes_received_ = 0;
  bool cut_ = false;
  DelayLine line_;
  Anchor<Faulty> anchor_{*this};
};

}  // namespace motley::transport
