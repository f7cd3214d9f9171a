// For this module's tests: callbacks that record their arguments, and functions that run an io_context.
#pragma once
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/transport.h"

namespace motley::transport {

using Memory = std::vector<std::byte>;

/// Runs handlers until `done` holds. The limit only prevents a test from hanging.
inline testing::AssertionResult run_until(boost::asio::io_context& io, const std::function<bool()>& done) {
  constexpr std::chrono::seconds hung{60};
  const auto give_up = std::chrono::steady_clock::now() + hung;
  while (!done()) {
    io.restart();
    if (io.run_one_until(give_up) == 0)
      return testing::AssertionFailure() << (io.stopped() ? "no handler is left to run" : "no handler has run for a minute")
                                         << " and the condition does not hold";
  }
  return testing::AssertionSuccess();
}

/// Runs all ready handlers, and those that become ready by that, until only sockets and timers could make progress.
inline void run_ready(boost::asio::io_context& io) {
  io.restart();
  while (io.poll() > 0) io.restart();
}

/// Bytes that differ between slices and positions.
inline Memory pattern(std::size_t bytes, std::uint32_t slice) {
  Memory memory(bytes);
  std::uint32_t x = slice * 2'654'435'761U + 1;
  for (std::byte& b : memory) {
    x = x * 1'664'525U + 1'013'904'223U;
    b = static_cast<std::byte>(x >> 24);
  }
  return memory;
}

inline wire::Push push_of(std::uint32_t slice) { return {.worker = {1}, .step = {2}, .slice = {slice}, .bits = 32}; }
inline std::uint32_t slice_of(const wire::Message& head) { return std::get<wire::Push>(head).slice.value; }

class RecordingCallbacks : public ConnectionCallbacks {
 public:
  std::vector<wire::Message> messages;
  std::map<std::uint32_t, Memory> slices;  // the buffers given for payloads
  std::vector<std::uint32_t> arrived;      // in the order of received()
  std::vector<std::uint64_t> tickets;      // in the order of sent()
  std::vector<std::string> ends;           // one for each closed()
  bool called_after_closed = false;
  bool two_buffers_at_once = false;  // requested by one connection, before the first was received

  std::function<std::optional<std::size_t>(std::size_t)>
      buffer_size_for;  // a buffer size other than the requested one, if it returns a value
  std::function<void(Connection&, const wire::Message&)> when_received = [](Connection&, const wire::Message&) {};
  std::function<void()> when_sent = [] {};
  std::function<void(Connection&)> when_message = [](Connection&) {};
  std::function<void(Connection&)> when_closed = [](Connection&) {};

  [[nodiscard]] bool ended() const { return !ends.empty(); }

  void on_message(Connection& from, wire::Message message) override {
    check_not_closed();
    messages.push_back(std::move(message));
    when_message(from);
  }
  std::span<std::byte> receive_buffer(Connection& from, const wire::Message& head, std::size_t bytes) override {
    check_not_closed();
    two_buffers_at_once = !filling_.insert(&from).second || two_buffers_at_once;
    Memory& memory = slices[slice_of(head)];
    memory.resize(buffer_size_for ? buffer_size_for(bytes).value_or(bytes) : bytes);
    return memory;
  }
  void received(Connection& from, const wire::Message& head) override {
    check_not_closed();
    filling_.erase(&from);
    arrived.push_back(slice_of(head));
    when_received(from, head);
  }
  void sent(Connection&, std::uint64_t ticket) override {
    check_not_closed();
    tickets.push_back(ticket);
    when_sent();
  }
  void closed(Connection& connection, const Error& why) override {
    check_not_closed();
    ends.push_back(why.message);
    when_closed(connection);
  }

 private:
  void check_not_closed() { called_after_closed = called_after_closed || ended(); }

  std::set<const Connection*> filling_;
};

}  // namespace motley::transport
